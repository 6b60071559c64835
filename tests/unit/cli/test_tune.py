"""`recollect tune`: what it says, refuses and writes."""

import builtins
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.experiments.tuning.conftest import SPEC
from typer.testing import CliRunner

from recollect.cli import app
from recollect.errors import ConfigError, MissingExtraError
from recollect.experiments.tuning.optional import optuna


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SPEC)
    return path


def invoke(*words: object) -> Any:
    return CliRunner().invoke(app, ["tune", *map(str, words)])


def test_a_dry_run_says_what_would_be_tried_and_writes_nothing(spec: Path, tmp_path: Path) -> None:
    shown = invoke(spec, "--dry-run", "--out", tmp_path / "search")
    assert shown.exit_code == 0, shown.output
    assert "er: 8 trials, 0 of them there" in shown.output
    assert "  lr: 0.01 to 0.3, log" in shown.output
    assert "  margins: insertion | replay | both | all" in shown.output
    assert "At most 40 runs: 8 trials on 2 seeds and 2 finalists on 2 fresh seeds" in shown.output
    assert not (tmp_path / "search").exists()
    rows = json.loads(invoke(spec, "--dry-run", "--json", "-m", "er").output)["rows"]
    assert rows == [
        {
            "method": "er",
            "space": {"lr": "0.01 to 0.3, log"},
            "known": [{"lr": 0.05}],
            "trials": 8,
            "trials_there": 0,
            "most_runs": 20,
        }
    ]


def test_a_benchmark_is_searched_with_the_packages_spec() -> None:
    shown = invoke("mnist-split", "-m", "er-p", "--trials", "3", "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert "step_size: 3 to 40, log" in shown.output


def test_asking_for_test_data_is_an_error(spec: Path) -> None:
    with pytest.raises(ConfigError, match="validation data only"):
        raise invoke(spec, "--set", "evaluation.on=test", "--dry-run").exception


def test_without_optuna_the_error_says_how_to_install_it(
    spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str, *more: object) -> object:
        if name == "optuna":
            raise ModuleNotFoundError("No module named 'optuna'", name="optuna")
        return real(name, *more)

    real: Callable[..., object] = importlib.import_module
    optuna.cache_clear()
    monkeypatch.setattr(importlib, "import_module", absent)
    try:
        with pytest.raises(MissingExtraError, match=r"pip install optuna"):
            raise invoke(spec, "--dry-run").exception
    finally:
        optuna.cache_clear()


def test_optuna_is_imported_by_a_search_alone() -> None:
    import subprocess

    code = "import sys, recollect, recollect.cli.run, recollect.experiments.tuning.plan; "
    code += "print('optuna' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
    assert builtins is not None


def test_data_that_is_missing_or_not_held_out_is_told_before_anything_runs(
    spec: Path, tmp_path: Path
) -> None:
    words = (spec, "--out", tmp_path / "search", "-m", "er")
    told = invoke(*words, "--set", "stream.validation_per_segment=0").exception
    assert "validation" in str(told)
    assert not (tmp_path / "search" / "journal.log").exists()


def test_a_model_that_does_not_fit_the_data_is_told_before_anything_runs(
    spec: Path, tmp_path: Path
) -> None:
    net = tmp_path / "net.py"
    net.write_text("from torch import nn\n\ndef make():\n    return nn.Linear(3, 10)\n")
    words = (spec, "--out", tmp_path / "search", "-m", "er")
    told = invoke(*words, "--set", f'model.name="{net}:make"').exception
    assert "one batch cannot be learnt" in str(told)
    assert not (tmp_path / "search" / "journal.log").exists()


def test_a_search_prints_its_choice_and_writes_spec_pages_and_trials(
    spec: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "search"
    words = (spec, "--out", folder, "-m", "er", "--trials", 3, "--fresh-seeds", 1, "--workers", 1)
    shown = invoke(*words, "--json")
    assert shown.exit_code == 0, shown.output
    events = [json.loads(line) for line in shown.stdout.splitlines()]
    trials = [event for event in events if event["event"] == "trial"]
    assert [trial["number"] for trial in trials] == [1, 2, 3]
    assert trials[0]["settings"] == {"lr": 0.05}
    assert events[-1]["event"] == "best"
    (best,) = events[-1]["rows"]
    assert best["accuracies"].keys() == {"2000"}
    for name in ("best.toml", "tuning.html", "small.md", "small.png", "small.json", "journal.log"):
        assert (folder / name).exists(), name
    # Again: everything is there, nothing is run, the same is told.
    again = invoke(*words, "--json")
    told = [json.loads(line) for line in again.stdout.splitlines()]
    assert told == [events[-1]]
    assert "3 of them there" in invoke(*words, "--dry-run").output
