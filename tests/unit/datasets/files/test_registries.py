from pathlib import Path

import pytest

from recollect.datasets.files.registries import debian_package, npm_pack
from recollect.errors import DownloadError


def stand_in(folder: Path, name: str, script: str) -> None:
    """Put a real program of that name on the path: the client is whatever the path has first."""
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}")
    return folder


def test_without_the_client_the_error_names_it(programs: Path, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="`some@1` needs `npm`, which is not installed"):
        npm_pack("some@1", tmp_path)
    with pytest.raises(DownloadError, match="`some` needs `apt-get`"):
        debian_package("some", tmp_path)


def test_the_clients_own_words_are_passed_on(programs: Path, tmp_path: Path) -> None:
    stand_in(programs, "npm", "echo 'ENOTFOUND no network' >&2; exit 1")
    with pytest.raises(DownloadError, match=r"`npm pack some@1 .*` failed: ENOTFOUND no network"):
        npm_pack("some@1", tmp_path)
    stand_in(programs, "npm", "exit 1")
    with pytest.raises(DownloadError, match="it gave no reason"):
        npm_pack("some@1", tmp_path)


def test_a_client_that_leaves_nothing_is_noticed(programs: Path, tmp_path: Path) -> None:
    stand_in(programs, "npm", "exit 0")
    with pytest.raises(DownloadError, match=r"`some@1` left 0 files"):
        npm_pack("some@1", tmp_path)
