"""The best trials of the first seeds go on, and fresh seeds alone choose among them."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.unit.experiments.tuning.conftest import MakePlan

from recollect.errors import ConfigError
from recollect.experiments.records.record import Record
from recollect.experiments.running.execute import execute
from recollect.experiments.specs.request import Request
from recollect.experiments.tuning.choose import (
    Kept,
    by_identity,
    chosen,
    finalists,
    standings,
)
from recollect.experiments.tuning.study import Budget, Inherited, Study, Trial
from recollect.experiments.tuning.study import read_study as read
from recollect.experiments.tuning.study import write_study as write

BUDGET = Budget(trials=3, seeds=2, finalists=2, fresh_seeds=2)


@pytest.fixture
def template(plan_of: MakePlan) -> Record:
    cell = plan_of().cell("er", {"lr": 0.05})
    return execute(Request(cell, 1000, "command"))


def study_of(budget: Budget = BUDGET) -> Study:
    trials = [Trial("er", n, {"lr": n / 10}, f"hash-{n}", "drawn") for n in (1, 2, 3)]
    return Study("small", "mnist-split", budget, {"er": trials}, {"er": ["lr"]})


def kept_with(
    template: Record, right: Mapping[int, tuple[int, int]]
) -> dict[tuple[str, int], Record]:
    """Make records: for each trial the right answers of 100 in the first and the second stage."""
    stages = (BUDGET.first_seeds, BUDGET.second_seeds)
    return by_identity(
        dataclasses.replace(
            template, spec_hash=f"hash-{number}", seed=seed, correct=((correct,),), total=(100,)
        )
        for number, both in right.items()
        for seeds, correct in zip(stages, both, strict=True)
        for seed in seeds
    )


def with_status(kept: Kept, correct: int, status: str) -> dict[tuple[str, int], Record]:
    """Let the first run with so many right answers have ended otherwise."""
    broken = next(key for key, record in kept.items() if record.correct == ((correct,),))
    return {**kept, broken: dataclasses.replace(kept[broken], status=status, error="reason")}


def test_fresh_seeds_choose_among_the_best_of_the_first(template: Record) -> None:
    kept = kept_with(template, {1: (80, 60), 2: (70, 99), 3: (79, 61)})
    found = standings(study_of(), "er", kept)
    assert [row.is_finalist for row in found] == [True, False, True]
    best = chosen(found)
    assert best is not None
    assert best.trial.number == 3
    assert best.fresh.mean == 0.61


def test_a_trial_with_a_failed_run_comes_last(template: Record) -> None:
    kept = kept_with(template, {1: (80, 60), 2: (20, 20), 3: (30, 30)})
    kept = with_status(kept, 80, "failed")
    assert [trial.number for trial in finalists(study_of(), "er", kept)] == [3, 2]


def test_a_pruned_trial_is_over_and_never_a_finalist(template: Record) -> None:
    kept = kept_with(template, {1: (80, 60), 2: (20, 20), 3: (30, 30)})
    kept = with_status(kept, 80, "pruned")
    del kept["hash-1", 1001]  # it was not made any more
    assert [trial.number for trial in finalists(study_of(), "er", kept)] == [3, 2]
    few = {key: record for key, record in kept.items() if record.spec_hash != "hash-3"}
    assert finalists(study_of(), "er", few) == []  # that one is missing


def test_nothing_is_chosen_before_a_stage_is_complete(template: Record) -> None:
    kept = kept_with(template, {1: (80, 60), 2: (70, 99), 3: (79, 61)})
    some = dict(list(kept.items())[:-1])
    assert chosen(standings(study_of(), "er", some)) is None
    assert finalists(study_of(), "er", {}) == []


def test_without_fresh_seeds_the_first_ones_choose(template: Record) -> None:
    kept = kept_with(template, {1: (70, 0), 2: (80, 0), 3: (79, 0)})
    study = study_of(dataclasses.replace(BUDGET, fresh_seeds=0))
    best = chosen(standings(study, "er", kept))
    assert best is not None
    assert best.trial.number == 2


def test_nothing_is_chosen_if_every_run_failed(template: Record) -> None:
    kept = {
        key: dataclasses.replace(record, status="failed", error="reason")
        for key, record in kept_with(template, {1: (1, 1), 2: (2, 2), 3: (3, 3)}).items()
    }
    for budget in (BUDGET, dataclasses.replace(BUDGET, fresh_seeds=0)):
        found = standings(study_of(budget), "er", kept)
        assert sum(row.is_finalist for row in found) == 2
        assert chosen(found) is None


def test_a_study_is_read_as_it_was_written(tmp_path: Path) -> None:
    study = dataclasses.replace(
        study_of(),
        inherited={"er-pc": Inherited(("er",), {"step_size": 3.0})},
        bases={"mine": "er"},
        importances={"er": {"lr": 1.0}},
        spec={"benchmark": "mnist-split"},
        command="recollect tune mnist-split",
        config="paper/mnist-split.toml",
    )
    write(study, tmp_path / "study.json")
    assert read(tmp_path / "study.json") == study
    assert len((tmp_path / "study.json").read_text().splitlines()) < 25


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (('"layout": 1', '"layout": 2'), "a newer version wrote it"),
        (('"name"', '"nome"'), "is no study"),
        (("{", "["), "is no study"),
        (('"number"', '"numero"'), "is no study"),
    ],
)
def test_a_damaged_study_is_told(tmp_path: Path, change: tuple[str, str], told: str) -> None:
    path = tmp_path / "study.json"
    write(study_of(), path)
    path.write_text(path.read_text().replace(*change, 1))
    with pytest.raises(ConfigError, match=told):
        read(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        read(tmp_path / "nothing.json")
