"""Methods are compared under the optimizer they ran with; the plan gives each as many trials."""

import dataclasses
import json

import pytest
from studies.optimizers import (
    METHODS,
    OPTIMIZERS,
    SGD,
    Runs,
    comparisons,
    found_runs,
    optimizers_table,
    weight_table,
)
from studies.tuning.committed import committed_study
from tests.unit.reports.runs import read_runs

from recollect.experiments.records.record import Record
from recollect.experiments.tuning.study import Study
from recollect.reports.statistics import holm

BENCHMARKS = ("mnist-split", "mnist-permuted")
STUDIES = [
    f"{benchmark}-{name}" for benchmark in BENCHMARKS for name in ("sgd", "momentum", "adam")
]


def made(method: str, optimizer: str, momentum: float, seed: int, right: int) -> Record:
    template = next(r for r in read_runs() if (r.benchmark, r.method) == ("mnist-split", "er"))
    spec = {
        "evaluation": {"on": "test"},
        "optimizer": {"name": optimizer, "momentum": momentum, "lr": 0.01},
        "options": {"replay_weight": 3.0} if method == "er-w" else {},
    }
    return dataclasses.replace(
        template,
        method=method,
        seed=seed,
        capacity=500,
        spec=json.dumps(spec),
        spec_hash=f"{method} {optimizer} {momentum}",
        correct=((right, 0), (right, right)),
        total=(1000, 1000),
        segment_names=template.segment_names[:2],
    )


@pytest.fixture
def records() -> list[Record]:
    gains = {
        ("er", "sgd", 0.0): (800, 804, 801),
        ("er-w", "sgd", 0.0): (810, 815, 809),
        ("er-p", "sgd", 0.0): (830, 831, 835),
        ("er", "sgd", 0.9): (790, 800, 780),
        ("er", "adam", 0.0): (820, 825, 821),
    }
    return [
        made(*which, seed, right)
        for which, rights in gains.items()
        for seed, right in enumerate(rights)
    ]


def test_runs_are_told_apart_by_optimizer_and_momentum(records: list[Record]) -> None:
    found = found_runs("mnist-split", records)
    assert set(found) == {
        Runs(SGD, "er"),
        Runs(SGD, "er-w"),
        Runs(SGD, "er-p"),
        Runs("momentum", "er"),
        Runs("Adam", "er"),
    }


def test_the_correction_is_over_all_comparisons_of_the_benchmark(records: list[Record]) -> None:
    compared = comparisons(found_runs("mnist-split", records))
    assert set(compared) == {
        (Runs(SGD, "er-w"), Runs(SGD, "er")),
        (Runs(SGD, "er-p"), Runs(SGD, "er")),
        (Runs(SGD, "er-p"), Runs(SGD, "er-w")),
        (Runs("momentum", "er"), Runs(SGD, "er")),
        (Runs("Adam", "er"), Runs(SGD, "er")),
    }
    alone = [difference.p_value for difference in compared.values()]
    assert None not in alone
    adjusted = [difference.adjusted for difference in compared.values()]
    assert adjusted == holm([p for p in alone if p is not None])


def test_the_tables_have_each_gain_and_say_what_is_missing(records: list[Record]) -> None:
    er, weighted, *_ = optimizers_table("mnist-split", records).splitlines()[2:]
    assert er.startswith("| SGD | ER | lr 0.01 | 3 | 80.2 ± 0.2 |")
    assert "| SGD | ER-W | lr 0.01, weight 3.0 | 3 | 81.1 ± 0.3 |" in weighted
    assert "| +1.0 [" in weighted
    assert len(optimizers_table("mnist-split", []).split("not yet run")) == 1 + 18
    rows = weight_table({"mnist-split": "MNIST-S"}, records).splitlines()[2:]
    assert rows[0].startswith("| MNIST-S | SGD | +2.1 [")
    assert [row.split("|")[3].strip() for row in rows[1:]] == ["not yet run"] * 2


@pytest.mark.parametrize("name", STUDIES)
def test_every_method_has_as_many_trials_under_every_optimizer(name: str) -> None:
    study = committed_study(name)
    benchmark = name.rpartition("-")[0]
    assert (study.benchmark, study.config) == (benchmark, f"optimizers/{name}.toml")
    assert tuple(study.trials) == METHODS
    numbers = {len(trials) for trials in study.trials.values()}
    assert numbers == {study.budget.trials} == {14 if benchmark == "mnist-split" else 12}
    spec = study.spec["optimizer"]
    assert (json.dumps(spec["name"]), str(spec["momentum"])) in OPTIMIZERS.values()


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_draws_are_at_the_same_places_of_a_methods_ranges(benchmark: str) -> None:
    def settings(study: Study) -> dict[str, list[object]]:
        """Leave out the rate, whose range is the optimizer's; its order is compared."""
        found: dict[str, list[object]] = {}
        for method, trials in study.trials.items():
            rates = [trial.settings["lr"] for trial in trials]
            order = sorted(range(len(rates)), key=rates.__getitem__)
            rest = [
                {key: value for key, value in trial.settings.items() if key != "lr"}
                for trial in trials
            ]
            found[method] = [order, rest]
        return found

    plain, *others = (
        settings(committed_study(f"{benchmark}-{name}")) for name in ("sgd", "momentum", "adam")
    )
    assert all(other == plain for other in others)
