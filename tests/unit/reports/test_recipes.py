"""Runs made otherwise than a benchmark's spec says are not shown as ours, or not without a word."""

import json

import pytest
from tests.unit.reports.test_cells import record_like

from recollect.experiments.records.record import Record
from recollect.paper.numbers import CAPACITY
from recollect.paper.tables import compare, exhibit_named
from recollect.reports.recipes import recipe


@pytest.mark.parametrize(
    ("table", "key", "value", "usual"),
    [
        ("model", "name", "reduced-resnet18", "mlp"),
        ("model", "hidden", [400], [100, 100]),
        ("stream", "batch_size", 20, 10),
        ("stream", "data", "mnist", "mnist-embedded"),
        ("stream", "num_segments", 2, "all"),
        ("evaluation", "on", "validation", "test"),
        ("optimizer", "name", "adam", "sgd"),
        ("optimizer", "momentum", 0.9, 0.0),
        ("learner", "augment", [{"name": "RandomFlip", "share": 0.5}], []),
        ("learner", "dtype", "bfloat16", "float32"),
        ("scheduler", "name", "StepLR", None),
    ],
)
def test_runs_made_otherwise_than_the_recipe_are_left_out_and_counted(
    runs: list[Record], table: str, key: str, value: object, usual: object
) -> None:
    er = [r for r in runs if (r.benchmark, r.method) == ("mnist-split", "er")]
    other = [record_like(r, spec=json.dumps({table: {key: value}}), spec_hash="other") for r in er]
    compared = compare(exhibit_named("table1"), other)
    assert all(cell.ours is None for cell in compared.cells)
    asked, recipe = json.dumps(value), json.dumps(usual)
    assert compared.notes == (
        f"mnist-split: 6 runs are left out; their {table}.{key} is {asked}, the recipe's {recipe}.",
    )
    # Beside runs of the recipe they change nothing, and what the exhibit does not show is not said.
    both = compare(exhibit_named("table1"), [*er, *other])
    assert both.cells == compare(exhibit_named("table1"), er).cells
    assert compare(exhibit_named("table3"), other).notes == ()


def test_the_usual_model_is_that_of_the_recipe(runs: list[Record]) -> None:
    er = [r for r in runs if (r.benchmark, r.method) == ("mnist-split", "er")]
    usual = [record_like(r, spec='{"model":{"name":"usual","hidden":null}}') for r in er]
    compared = compare(exhibit_named("table1"), usual)
    assert compared.cells == compare(exhibit_named("table1"), er).cells
    assert compared.notes == ()


def test_runs_of_another_length_are_shown_with_a_word(runs: list[Record]) -> None:
    er = [r for r in runs if (r.benchmark, r.method) == ("mnist-split", "er")]
    spec = {
        "stream": {"examples_per_segment": 300},
        "learner": {"iterations": 3, "replay": 20},
    }
    compared = compare(exhibit_named("table1"), [record_like(r, spec=json.dumps(spec)) for r in er])
    assert sum(cell.ours is not None for cell in compared.cells) == 1
    assert compared.notes == (
        "mnist-split: run with 300 examples per segment.",
        "mnist-split: run with 3 updates per batch.",
        "mnist-split: run with 20 replayed examples per update.",
    )


def test_every_benchmark_of_the_paper_has_a_recipe() -> None:
    for benchmark in CAPACITY:
        found = recipe(benchmark)
        assert found["stream.batch_size"] == "10"
        assert found["evaluation.on"] == '"test"'
