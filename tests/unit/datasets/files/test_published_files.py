"""Fetching as a whole: the order of ways, damage, kills, and two processes at once."""

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.datasets.files import fetch_worker
from tests.unit.datasets.files.fetch_worker import one_file_set
from tests.unit.datasets.files.range_server import Served, serving

from recollect.datasets.files.downloads import Progress, RemoteFile, no_progress
from recollect.datasets.files.published_files import Contents, PublishedFiles, Way
from recollect.errors import DataError, DigestError, DownloadError, MissingExtraError

CONTENT = random.Random(0).randbytes(3_000_000)
MD5 = hashlib.md5(CONTENT).hexdigest()


@pytest.fixture
def served() -> Iterator[Served]:
    with serving({"file": CONTENT}) as server:
        yield server


def tiny(served: Served, *earlier: Way) -> PublishedFiles:
    return one_file_set(RemoteFile(served.url("file"), MD5, len(CONTENT)), *earlier)


def test_what_is_not_here_is_said_with_the_command_that_fetches_it(
    served: Served, own_root: Path
) -> None:
    with pytest.raises(DataError, match=r"`tiny` is not in .*recollect data fetch tiny"):
        tiny(served).load()
    assert tiny(served).locate() is None


def test_fetching_then_loading_gives_the_published_bytes(served: Served, own_root: Path) -> None:
    place = tiny(served).fetch(None, no_progress)
    assert place == own_root / "tiny" == tiny(served).locate()
    assert bytes(tiny(served).load().train.inputs.numpy()) == CONTENT
    assert tiny(served).verify() == [("bytes", f"md5 {MD5}")]
    left = sorted(entry.name for entry in own_root.iterdir())
    assert left == [".tiny.lock", "tiny"]


def test_fetching_twice_asks_the_server_once(served: Served, own_root: Path) -> None:
    for _ in range(2):
        tiny(served).fetch(None, no_progress)
    assert served.starts == [0]


def test_one_changed_byte_on_disk_is_refused_and_fetching_mends_it(
    served: Served, own_root: Path
) -> None:
    file = tiny(served).fetch(None, no_progress) / "bytes"
    file.write_bytes(CONTENT[:1234] + bytes([CONTENT[1234] ^ 1]) + CONTENT[1235:])
    for refuses in (tiny(served).load, tiny(served).verify):
        with pytest.raises(DigestError, match="damaged"):
            refuses()
    tiny(served).fetch(None, no_progress)
    tiny(served).verify()


def test_a_folder_the_user_names_comes_first(
    served: Served, own_root: Path, tmp_path: Path
) -> None:
    (tmp_path / "bytes").write_bytes(CONTENT)
    tiny(served).load(tmp_path)
    tiny(served).fetch(tmp_path, no_progress)
    assert served.starts == []
    tiny(served).load()


def test_a_damaged_folder_the_user_names_is_reported_not_passed_over(
    served: Served, own_root: Path, tmp_path: Path
) -> None:
    (tmp_path / "bytes").write_bytes(CONTENT[:-1])
    with pytest.raises(DigestError, match="damaged"):
        tiny(served).fetch(tmp_path, no_progress)
    assert served.starts == []


def test_ways_are_tried_in_order_until_one_gives_the_published_bytes(
    served: Served, own_root: Path
) -> None:
    def fails(_scratch: Path, _progress: Progress) -> Contents | None:
        raise DownloadError("no client")

    def lacks_extra(_scratch: Path, _progress: Progress) -> Contents | None:
        raise MissingExtraError("no pyarrow")

    told: list[str] = []
    ways = (
        Way("absent", lambda _scratch, _progress: None),
        Way("broken", fails),
        Way("lacking", lacks_extra),
        Way("wrong", lambda _scratch, _progress: {"bytes": b"other"}),
    )
    tiny(served, *ways).fetch(None, lambda what, _done, _total: told.append(what))
    assert told[:5] == ["absent", "broken", "lacking", "wrong", "the page"]
    assert bytes(tiny(served).load().train.inputs.numpy()) == CONTENT


def test_when_no_way_works_the_error_lists_each_and_the_way_out(
    served: Served, own_root: Path, tmp_path: Path
) -> None:
    del served.files["file"]
    wrong = Way("wrong", lambda _scratch, _progress: {"bytes": b"other"})
    with pytest.raises(DataError) as caught:
        tiny(served, wrong).fetch(tmp_path, no_progress)
    message = str(caught.value)
    assert f"`{tmp_path}`: nothing we know there" in message
    assert "wrong: `wrong: bytes` has md5" in message
    assert "the page: `http" in message
    assert "recollect data fetch tiny --root FOLDER" in message


def start_worker(served: Served, root: Path) -> subprocess.Popen[str]:
    command = [sys.executable, fetch_worker.__file__, served.url("file"), MD5, str(len(CONTENT))]
    environment = {**os.environ, "RECOLLECT_DATA": str(root)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def kill_when(worker: subprocess.Popen[str], part: Path, num_bytes: int) -> None:
    deadline = time.monotonic() + 60
    while not (part.exists() and part.stat().st_size >= num_bytes):
        assert time.monotonic() < deadline
        assert worker.poll() is None
        time.sleep(0.002)
    worker.send_signal(signal.SIGKILL)
    worker.communicate()
    assert worker.returncode == -signal.SIGKILL


@pytest.mark.slow
def test_kill_9_in_mid_download_then_again_continues_and_gives_the_right_bytes(
    served: Served, own_root: Path
) -> None:
    served.pause_seconds = 0.02
    part = own_root / ".tiny.scratch" / "bytes.part"
    for num_bytes in (1, 1_000_000):
        worker = start_worker(served, own_root)
        kill_when(worker, part, num_bytes)
        assert tiny(served).locate() is None
        with pytest.raises(DataError, match="is not in"):
            tiny(served).load()
    worker = start_worker(served, own_root)
    worker.communicate(timeout=60)
    assert worker.returncode == 0
    assert bytes(tiny(served).load().train.inputs.numpy()) == CONTENT
    assert served.starts[0] == 0
    assert served.starts[2] >= 1_000_000


@pytest.mark.slow
def test_two_processes_at_once_fetch_once_and_both_end_well(served: Served, own_root: Path) -> None:
    served.pause_seconds = 0.01
    workers = [start_worker(served, own_root) for _ in range(2)]
    for worker in workers:
        worker.communicate(timeout=60)
    assert [worker.returncode for worker in workers] == [0, 0]
    assert served.starts == [0]
    tiny(served).verify()


@pytest.mark.parametrize("left_over", [".tiny.staging/bytes", ".tiny.scratch/npm/half.tgz"])
def test_what_a_killed_attempt_left_is_never_used(
    served: Served, own_root: Path, left_over: str
) -> None:
    half = own_root / left_over
    half.parent.mkdir(parents=True)
    half.write_bytes(CONTENT[:100])
    assert tiny(served).locate() is None
    tiny(served).fetch(None, no_progress)
    tiny(served).verify()
    assert not half.exists()
