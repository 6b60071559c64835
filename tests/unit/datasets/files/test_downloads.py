import hashlib
import socket
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.datasets.files.range_server import Served, serving

from recollect.datasets.files.downloads import RemoteFile, download
from recollect.errors import DigestError, DiskSpaceError, DownloadError

CONTENT = bytes(range(256)) * 1000


@pytest.fixture
def served() -> Iterator[Served]:
    with serving({"file": CONTENT}) as server:
        yield server


def remote(served: Served, content: bytes = CONTENT, name: str = "file") -> RemoteFile:
    return RemoteFile(served.url(name), hashlib.md5(content).hexdigest(), len(content))


def test_a_file_arrives_whole_and_progress_is_told(served: Served, tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    download(remote(served), tmp_path / "f", progress=lambda *state: told.append(state))
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert told[-1] == ("file", len(CONTENT), len(CONTENT))
    assert not (tmp_path / "f.part").exists()


def test_a_file_that_is_here_is_not_fetched_again(served: Served, tmp_path: Path) -> None:
    for _ in range(2):
        download(remote(served), tmp_path / "f")
    assert served.starts == [0]


def test_a_damaged_file_that_is_here_is_fetched_again(served: Served, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"damaged")
    download(remote(served), tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_a_download_continues_where_it_stopped(served: Served, tmp_path: Path) -> None:
    (tmp_path / "f.part").write_bytes(CONTENT[:100_000])
    download(remote(served), tmp_path / "f")
    assert served.starts == [100_000]
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_a_finished_part_needs_no_server(served: Served, tmp_path: Path) -> None:
    (tmp_path / "f.part").write_bytes(CONTENT)
    download(remote(served), tmp_path / "f")
    assert served.starts == []


def test_a_server_without_ranges_is_read_from_the_start(served: Served, tmp_path: Path) -> None:
    served.knows_ranges = False
    (tmp_path / "f.part").write_bytes(CONTENT[:100_000])
    download(remote(served), tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_a_part_with_other_bytes_is_thrown_away_and_fetched_afresh(
    served: Served, tmp_path: Path
) -> None:
    (tmp_path / "f.part").write_bytes(b"x" * 100_000)
    download(remote(served), tmp_path / "f")
    assert served.starts == [100_000, 0]
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_a_part_longer_than_the_file_is_thrown_away(served: Served, tmp_path: Path) -> None:
    (tmp_path / "f.part").write_bytes(CONTENT + b"more")
    download(remote(served), tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_one_changed_byte_is_refused_and_nothing_lands(served: Served, tmp_path: Path) -> None:
    served.files["file"] = CONTENT[:-1] + b"!"
    with pytest.raises(DigestError, match="the published one is"):
        download(remote(served), tmp_path / "f")
    assert [entry.name for entry in tmp_path.iterdir()] == ["f.lock"]


def test_a_longer_file_than_published_is_read_no_further(served: Served, tmp_path: Path) -> None:
    served.files["file"] = CONTENT + bytes(10_000_000)
    download(remote(served), tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_a_connection_that_drops_is_taken_up_again(served: Served, tmp_path: Path) -> None:
    served.cut_after = 150_000
    with pytest.raises(DownloadError, match=r"150,000 of 256,000 bytes are here.*to continue"):
        download(remote(served), tmp_path / "f")
    served.cut_after = None
    download(remote(served), tmp_path / "f")
    assert served.starts[-1] == 150_000
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_a_server_whose_file_shrank_is_asked_afresh(served: Served, tmp_path: Path) -> None:
    served.files["file"] = CONTENT[:100]
    (tmp_path / "f.part").write_bytes(CONTENT[:200])
    with pytest.raises(DownloadError):
        download(remote(served), tmp_path / "f")
    assert served.starts[:2] == [200, 0]


def test_a_missing_page_is_not_asked_four_times(served: Served, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"gone` could not be fetched.*--root"):
        download(remote(served, name="gone"), tmp_path / "f")


def test_no_network_says_what_to_do(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = urllib.parse.urlunsplit(
            ("http", f"127.0.0.1:{unused.getsockname()[1]}", "/file", "", "")
        )
    with pytest.raises(DownloadError, match=r"refused.*Run the command again.*--root"):
        download(RemoteFile(address, "0" * 32, 10), tmp_path / "f")


def test_a_file_larger_than_the_disk_is_not_begun(served: Served, tmp_path: Path) -> None:
    with pytest.raises(DiskSpaceError, match="MB are needed"):
        download(RemoteFile(served.url("file"), "0" * 32, 10**18), tmp_path / "f")
    assert served.starts == []


def test_a_disk_that_fills_up_on_the_way_is_explained(served: Served, tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full, the device that is always full")
    (tmp_path / "f.part").symlink_to("/dev/full")
    with pytest.raises(DiskSpaceError, match="ran out of space"):
        download(remote(served), tmp_path / "f")
    assert not (tmp_path / "f").exists()


def test_only_web_addresses_are_taken(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"`url` is `file:///etc/passwd`"):
        download(RemoteFile("file:///etc/passwd", "0" * 32, 10), tmp_path / "f")
