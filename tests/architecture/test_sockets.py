"""Tests stay on this machine, inside this repository."""

import re
import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest
from tests import sockets

TESTS = Path(__file__).parents[1]
OUTSIDE = "192.0.2.1"  # kept for examples, so nobody's


def test_a_test_that_connects_to_another_machine_fails() -> None:
    with (
        socket.socket() as connection,
        pytest.raises(pytest.fail.Exception, match=r"192\.0\.2\.1.*mark it `network`"),
    ):
        connection.connect((OUTSIDE, 80))


def test_a_test_that_asks_for_a_page_fails_although_the_library_catches_its_errors() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"example\.org"):
        urllib.request.urlopen("http://example.org/", timeout=1)


def test_a_test_that_sends_a_packet_fails() -> None:
    with (
        socket.socket(type=socket.SOCK_DGRAM) as sender,
        pytest.raises(pytest.fail.Exception, match=r"192\.0\.2\.1"),
    ):
        sender.sendto(b"", (OUTSIDE, 9))


@pytest.mark.parametrize("client", sorted(map(Path, sockets.CLIENTS)), ids=lambda path: path.name)
def test_a_test_that_starts_a_client_of_a_registry_fails(client: Path) -> None:
    for program in (client.name, str(client)):
        with pytest.raises(pytest.fail.Exception, match=client.name):
            subprocess.run([program, "--version"], capture_output=True, check=False)


def test_a_server_of_the_test_itself_is_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        for host in ("127.0.0.1", "localhost"):
            socket.create_connection((host, server.getsockname()[1]), timeout=5).close()


def test_no_test_names_a_folder_beside_the_repository() -> None:
    outside = [
        f"{path.relative_to(TESTS)}: parents[{level}]"
        for path in TESTS.rglob("*.py")
        for level in map(
            int, re.findall(r"__file__\)(?:\.resolve\(\))?\.parents\[(\d+)\]", path.read_text())
        )
        if level > len(path.relative_to(TESTS).parts)
    ]
    assert outside == []
