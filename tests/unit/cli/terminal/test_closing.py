"""`recollect run` without arguments ends in sentences that its own numbers make."""

import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from recollect.cli import main
from recollect.cli.run import MAIN_JOB
from recollect.cli.terminal import sweeping
from recollect.experiments.records.store import Store
from recollect.experiments.running.execute import failed_record
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.configs import config_path
from recollect.experiments.specs.request import requests
from recollect.experiments.specs.spec import load_spec


def fill(store: Store, right: Mapping[str, int]) -> None:
    """Put the runs of the default job there, each with so many of 1000 answers right."""
    spec = load_spec(config_path(MAIN_JOB))
    for request in requests(cells(spec), range(spec.seeds)):
        correct = right[request.cell.method] + request.seed % 3
        done = replace(
            failed_record(request, ""), status="done", correct=((correct,),), total=(1000,)
        )
        store.add(request, done)


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> "Command":
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sweeping, "write_report", lambda *_, **__: None)
    return Command(monkeypatch, capsys)


class Command:
    """Runs a command in this process and returns what it prints."""

    def __init__(self, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self._patch = patch
        self._capture = capture

    def __call__(self, *words: str) -> str:
        self._patch.setattr(sys, "argv", ["recollect", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        return self._capture.readouterr().out


@pytest.mark.parametrize(("best", "side"), [(860, "6.0 points above"), (740, "6.0 points below")])
def test_the_default_job_closes_with_what_its_runs_show(
    command: Command, best: int, side: str
) -> None:
    fill(Store("runs"), {"van": 190, "er": 800, "er-clip-mir": best})
    _, _, closing = command("run").partition("What you have just seen\n")
    sentences = [line for line in closing.splitlines() if line.startswith("- ")]
    assert sentences[0].startswith("- VAN (no memory) ends with 19.1 % of the test answers right")
    assert sentences[1].startswith("- VAN is 61.0 points below ER: more than chance explains")
    assert sentences[2].startswith(f"- ER-CLIP-MIR is {side} ER: more than chance explains (24")


def test_the_two_commands_that_it_suggests_are_valid_and_name_the_store(command: Command) -> None:
    fill(Store("elsewhere"), {"van": 190, "er": 800, "er-clip-mir": 860})
    _, _, closing = command("run", "--out", "elsewhere").partition("Try next\n")
    suggested = re.findall(r"^  recollect (.*)$", closing, flags=re.MULTILINE)
    assert len(suggested) == 2
    for line in suggested:
        words = shlex.split(line)
        assert words[-2:] == ["--out", "elsewhere"]
        assert "runs are missing" in command(*words, "--dry-run")


@pytest.mark.parametrize(
    "words", [("--quiet",), ("--json",), ("--method", "er"), ("mnist-split",), ("--memory", "500")]
)
def test_a_command_that_asks_for_something_closes_with_its_table(
    command: Command, words: tuple[str, ...]
) -> None:
    fill(Store("runs"), {"van": 190, "er": 800, "er-clip-mir": 860})
    assert "What you have just seen" not in command("run", *words)
