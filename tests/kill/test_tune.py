"""`recollect tune` killed, shared and stopped: the real command, in processes of its own."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from recollect.experiments.records.record import Record
from recollect.experiments.records.store import Store
from recollect.experiments.tuning.choose import by_identity, chosen, standings
from recollect.experiments.tuning.study import Study, read_study

pytestmark = pytest.mark.slow

SPEC = """
benchmark = "mnist-split"
memory = [50]

[stream]
examples_per_segment = 300
validation_per_segment = 50

[tune]
trials = 6
seeds = 2
finalists = 2
fresh_seeds = 2
set = ["evaluation.points=8", "stream.examples_per_segment=100"]

[methods.er]
[methods.er-c]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "small.toml").write_text(SPEC)
    return tmp_path


def command(*more: str) -> list[str]:
    return [sys.executable, "-m", "recollect", "tune", "small.toml", "--out", "search", *more]


def start(folder: Path, *more: str) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    return subprocess.Popen(command(*more), cwd=folder, stdout=pipe, stderr=pipe, text=True)


def finish(folder: Path, *more: str) -> str:
    done = subprocess.run(command(*more), cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def found(folder: Path) -> tuple[Study, list[Record]]:
    return read_study(folder / "search" / "small.json"), Store(folder / "search").records()


def outcome(folder: Path) -> dict[str, object]:
    """Everything that a search decides: trials, what came out of them, and the choice."""
    study, records = found(folder)
    kept = by_identity(records)
    return {
        method: [
            (row.trial, row.first, row.fresh, row.is_finalist, row.is_chosen)
            for row in standings(study, method, kept)
        ]
        for method in study.trials
    }


def num_files(folder: Path) -> int:
    return len(list((folder / "search" / "records").glob("*/*.parquet")))


def wait_for(folder: Path, count: int) -> None:
    deadline = time.monotonic() + 240
    while num_files(folder) < count:
        assert time.monotonic() < deadline, "no runs were made"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "small.toml").write_text(SPEC)
    finish(folder, "--workers", "1")
    return outcome(folder)


def test_a_search_killed_twice_goes_on_to_the_same_choice_and_makes_nothing_twice(
    folder: Path, undisturbed: dict[str, object]
) -> None:
    for count in (3, 9):
        process = start(folder, "--workers", "2")
        wait_for(folder, count)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    finish(folder, "--workers", "2")
    assert outcome(folder) == undisturbed
    _, records = found(folder)
    assert num_files(folder) == len(records)  # one file per run, no run twice


def test_two_commands_on_one_folder_share_the_trials(
    folder: Path, undisturbed: dict[str, object]
) -> None:
    both = [start(folder, "--workers", "1"), start(folder, "--workers", "1")]
    shown = [process.communicate(timeout=280)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], shown
    assert outcome(folder) == undisturbed
    _, records = found(folder)
    assert num_files(folder) == len(records)
    # Each trial was ended by one of them, and each of them ended some.
    ended = [re.findall(r"^(er\S*) (\d+)/6 ", text, flags=re.MULTILINE) for text in shown]
    assert sorted(ended[0] + ended[1]) == sorted(
        (method, str(number)) for method in ("er", "er-c") for number in range(1, 7)
    )
    assert min(map(len, ended)) > 0


def test_a_trial_of_a_killed_command_is_taken_up_by_the_other_at_once(
    folder: Path, undisturbed: dict[str, object]
) -> None:
    doomed = start(folder, "--workers", "1")
    wait_for(folder, 2)
    other = start(folder, "--workers", "1")
    wait_for(folder, 6)
    os.kill(doomed.pid, signal.SIGKILL)
    doomed.communicate()
    _, shown = other.communicate(timeout=280)
    assert other.returncode == 0, shown
    assert outcome(folder) == undisturbed


def test_ctrl_c_saves_places_and_says_how_to_go_on(
    folder: Path, undisturbed: dict[str, object]
) -> None:
    process = start(folder, "--workers", "1")
    wait_for(folder, 2)
    process.send_signal(signal.SIGINT)
    _, shown = process.communicate(timeout=100)
    assert process.returncode == 128 + signal.SIGINT
    assert "Stopped; the same command continues" in shown
    finish(folder, "--workers", "1")
    assert outcome(folder) == undisturbed


def test_the_written_spec_makes_the_best_value_again_bit_for_bit(folder: Path) -> None:
    finish(folder, "--workers", "2", "--json")
    study, records = found(folder)
    best = chosen(standings(study, "er-c", by_identity(records)))
    assert best is not None
    text = (folder / "search" / "best.toml").read_text()
    assert f"validation mean {best.fresh.mean!r} over seeds 2000 to 2001" in text
    assert "spec " + best.trial.spec_hash[:12] in text
    # The very command that stands in it.
    (again,) = re.findall(r"^#   (recollect run .*--method er-c .*)$", text, flags=re.MULTILINE)
    words = [sys.executable, "-m", *shlex.split(again), "--out", "again", "--quiet"]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    made = by_identity(Store(folder / "again").records())
    before = by_identity(records)
    assert {seed for _, seed in made} == {2000, 2001}
    for identity, record in made.items():
        assert record.correct == before[identity].correct
        assert record.curve == before[identity].curve
    # And without --set it is the spec of the whole streams, on test data.
    plain = [sys.executable, "-m", "recollect", "run", "--spec", "search/best.toml"]
    words = [*plain, "--method", "er-c", "--dry-run", "--json"]
    shown = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout
    assert json.loads(shown)["rows"][0]["spec_hash"] != best.trial.spec_hash
