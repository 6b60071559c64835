"""What a step costs, counted by a clock that passes a second per update."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from recollect.experiments.running.costs import StepCost, step_costs, unit_of
from recollect.experiments.specs.arrival_checks import is_unit
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.spec import load_spec
from recollect.learner import Learner

THREE = ["methods.three.base=er", "methods.three.iterations=3"]


@dataclass
class Clock:
    """Tells how many updates were made, and whose steps they were."""

    now: float = 0.0
    steps: list[int] = field(default_factory=list)
    slow: Callable[[int], float] = float

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock, real = Clock(), Learner.observe

    def observe(learner: Learner, *batch: Any) -> Any:
        report = real(learner, *batch)
        clock.steps.append(len(report.updates))
        clock.now += clock.slow(len(report.updates))
        return report

    monkeypatch.setattr(Learner, "observe", observe)
    return clock


def measured(spec: Path, clock: Clock, *methods: str, **how: Any) -> list[StepCost]:
    overrides = [*THREE, *how.pop("overrides", [])]
    return step_costs(load_spec(spec, overrides=overrides), methods=methods, clock=clock, **how)


def test_three_updates_cost_three_steps_of_er(small_spec: Path, clock: Clock) -> None:
    er, three, van = measured(small_spec, clock, "er", "three", "van", steps=4)
    assert (er.cost, three.cost, van.cost) == (1.0, 3.0, 1.0)
    assert (three.low, three.high, three.seconds) == (3.0, 3.0, 3.0)
    assert [row.is_unit for row in (er, three, van)] == [True, False, False]
    assert [row.capacity for row in (er, three, van)] == [20, 20, 0]
    assert er.filled == 20


def test_the_unit_is_one_update_whatever_er_is_in_the_spec(small_spec: Path, clock: Clock) -> None:
    said = ["methods.er.iterations=2", "learner.iterations=5"]
    er, gss = measured(small_spec, clock, "er", "gss", steps=2, overrides=said)
    assert (er.cost, er.is_unit, gss.cost) == (2.0, False, 5.0)


def test_methods_step_in_turns_first_in_one_order_and_then_in_the_other(
    small_spec: Path, clock: Clock
) -> None:
    measured(small_spec, clock, "three", steps=4)
    # The memory of 20 is full after two batches, and one more is not counted.
    rounds = [clock.steps[k : k + 2] for k in range(0, len(clock.steps), 2)]
    assert rounds == [[1, 3], [3, 1], [1, 3], *([[1, 3], [3, 1]] * 2)]


def test_a_step_that_was_disturbed_does_not_move_the_cost(small_spec: Path, clock: Clock) -> None:
    def slow(updates: int) -> float:
        return updates * (100.0 if len(clock.steps) in (9, 12) else 1.0)

    clock.slow = slow
    (three,) = measured(small_spec, clock, "three", steps=9)
    assert three.cost == 3.0


def test_a_short_stream_begins_again(small_spec: Path, clock: Clock) -> None:
    measured(small_spec, clock, "three", steps=30)  # the stream has 20 batches
    assert len(clock.steps) == 2 * 33


def test_what_is_asked_of_a_budget_changes_nothing(small_spec: Path, clock: Clock) -> None:
    said = ["stream.budget=0.1", "stream.cost.gss=4.0"]
    (three,) = measured(small_spec, clock, "three", steps=5, overrides=said)
    assert three.cost == 3.0


def test_of_several_sizes_the_first_counts_unless_one_is_asked_for(
    small_spec: Path, clock: Clock
) -> None:
    said = ["memory=[30, 10]"]
    assert [r.capacity for r in measured(small_spec, clock, "er", steps=2, overrides=said)] == [30]
    asked = measured(small_spec, clock, "er", steps=2, overrides=said, memory=10)
    assert [row.capacity for row in asked] == [10]


def test_a_large_memory_is_not_waited_for(small_spec: Path, clock: Clock) -> None:
    (er,) = measured(small_spec, clock, "er", steps=2, overrides=["memory=[10000]"])
    assert er.filled == 1010


def test_the_unit_of_a_spec_is_the_one_that_needs_no_cost(small_spec: Path) -> None:
    said = ["learner.iterations=4", 'learner.augment=["RandomCrop"]', 'learner.passes="separate"']
    spec = load_spec(small_spec, overrides=said)
    (unit,) = cells(unit_of(spec))
    assert is_unit(unit, unit_of(spec))
    assert not is_unit(cells(spec, methods=["er"])[0], spec)
    assert unit.learner["passes"] == "separate"
