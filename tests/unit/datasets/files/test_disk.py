import subprocess
import sys
import time
from pathlib import Path

import pytest

from recollect.datasets.files.disk import (
    disk_space_explained,
    locked,
    require_space,
    staged_folder,
)
from recollect.errors import DataError, DiskSpaceError


def test_a_folder_appears_whole_when_the_block_ends_well(tmp_path: Path) -> None:
    target = tmp_path / "set"
    with staged_folder(target) as staging:
        (staging / "file").write_text("whole")
        assert not target.exists()
    assert (target / "file").read_text() == "whole"
    assert [entry.name for entry in tmp_path.iterdir()] == ["set"]


def test_a_folder_does_not_appear_when_the_block_fails(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), staged_folder(tmp_path / "set") as staging:
        (staging / "absent").rename(staging / "file")
    assert list(tmp_path.iterdir()) == []


def test_an_old_folder_is_replaced_and_a_killed_attempt_is_swept_away(tmp_path: Path) -> None:
    target = tmp_path / "set"
    for left_over in (target, tmp_path / ".set.staging", tmp_path / ".set.replaced"):
        left_over.mkdir()
        (left_over / "old").write_text("old")
    with staged_folder(target) as staging:
        assert list(staging.iterdir()) == []
        (staging / "new").write_text("new")
    assert [entry.name for entry in target.iterdir()] == ["new"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["set"]


def test_asking_for_more_than_the_disk_holds_names_both_sizes_and_the_way_out(
    tmp_path: Path,
) -> None:
    require_space(tmp_path / "not" / "yet", 1)
    with pytest.raises(DiskSpaceError, match=r"MB free and 1,000,000,000,000 MB.*RECOLLECT_DATA"):
        require_space(tmp_path / "not" / "yet", 10**18)


def test_a_disk_that_fills_up_is_explained(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full, the device that is always full")
    with (
        pytest.raises(DiskSpaceError, match="ran out of space"),
        disk_space_explained(tmp_path),
        full.open("wb", buffering=0) as stream,
    ):
        stream.write(b"x")


def test_other_system_errors_pass_through_unchanged(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), disk_space_explained(tmp_path):
        (tmp_path / "absent").read_bytes()


def test_a_folder_that_cannot_be_written_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with (
        pytest.raises(DataError, match=r"file` cannot be written .*Point `RECOLLECT_DATA`"),
        locked(tmp_path / "file" / "lock"),
    ):
        pass


def test_a_lock_keeps_a_second_process_out_until_its_holder_is_killed(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    holder_code = (
        "import fcntl, sys, time; handle = open(sys.argv[1], 'a');"
        "fcntl.flock(handle, fcntl.LOCK_EX); print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder_code, str(lock)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        waiter_code = (
            "import sys; from pathlib import Path\n"
            "from recollect.datasets.files.disk import locked\n"
            "with locked(Path(sys.argv[1])): print('mine', flush=True)"
        )
        with subprocess.Popen(
            [sys.executable, "-c", waiter_code, str(lock)], stdout=subprocess.PIPE, text=True
        ) as waiter:
            time.sleep(0.3)
            assert waiter.poll() is None
            holder.kill()
            assert waiter.communicate(timeout=60)[0] == "mine\n"
    with locked(lock):
        pass
