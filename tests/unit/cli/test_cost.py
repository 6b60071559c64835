"""`recollect cost` prints what a spec takes."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from recollect.cli import app
from recollect.errors import ConfigError
from recollect.experiments.records.store import Store
from recollect.experiments.specs.cell import Cell

SPEC = """
benchmark = "mnist-split"
memory = [20]

[methods.er]
[methods."der++"]
[methods.three]
base = "er"
iterations = 3

[evaluation]
points = 2
examples = 50

[stream]
examples_per_segment = 40
"""


@pytest.fixture(autouse=True)
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("my.toml").write_text(SPEC)
    return Path("my.toml")


def invoke(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


def test_what_is_printed_goes_below_the_spec_and_runs(spec: Path) -> None:
    told = invoke("cost", "my.toml", "-m", "all", "--steps", "3")
    assert told.exit_code == 0, told.output
    costs = tomllib.loads(told.output)["stream"]["cost"]
    assert list(costs) == ["found", "er", "der++", "three"]
    assert costs["er"] == 1.0
    assert costs["three"] > 0
    spec.write_text(f"{SPEC}budget = 0.5\n\n{told.output}")
    ran = invoke("run", "my.toml", "--seeds", "1", "--workers", "1", "--quiet")
    assert ran.exit_code == 0, ran.output
    for record in Store("runs").records():
        cell = Cell.from_json(record.spec)
        assert cell.stream["cost"] == costs[record.method]
        assert cell.found["stream.cost"] == costs["found"]
        assert costs["found"].startswith("recollect cost: median of 3 steps beside er; ")
        ratio = 0.5 / costs[record.method]
        assert record.num_steps == 1 + int(19 * min(1, ratio))


def test_a_program_gets_all_that_was_measured() -> None:
    told = json.loads(invoke("cost", "my.toml", "-m", "three", "--steps", "3", "--json").output)
    assert told["event"] == "cost"
    (row,) = told["rows"]
    assert row["low"] <= row["cost"] <= row["high"]
    assert (row["method"], row["is_unit"], row["filled"], row["capacity"]) == (
        *("three", False),
        *(20, 20),
    )


def test_a_memory_that_is_not_full_is_told() -> None:
    told = invoke("cost", "my.toml", "-m", "er", "--steps", "2", "--memory", "5000")
    assert "# The memory held 1,010 examples; a full one may cost more." in told.output


def test_an_unknown_method_is_told() -> None:
    with pytest.raises(ConfigError, match="has no 'thre'; did you mean `three`"):
        raise invoke("cost", "my.toml", "-m", "thre").exception
