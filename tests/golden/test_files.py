"""What `make golden` keeps, adds and drops, and what counts as moved."""

import copy

import pytest
from tests.golden.compare import differences
from tests.golden.files import EVERYWHERE, Kept, merged, on, read
from tests.golden.traces import Trace

FLOAT32: Trace = {"steps": [], "weights": "one digest", "memory": "one digest"}
MOVED: Trace = FLOAT32 | {"weights": "another"}


@pytest.fixture
def float64() -> Trace:
    return read("er-c")[EVERYWHERE]


@pytest.fixture
def kept(float64: Trace) -> Kept:
    return {EVERYWHERE: float64, on("here"): FLOAT32, on("there"): FLOAT32}


def nudged(trace: Trace, by: float) -> Trace:
    other = copy.deepcopy(trace)
    numbers = other["steps"][7][0]
    numbers[0] = (float.fromhex(numbers[0]) + by).hex()
    return other


def test_the_same_traces_leave_a_file_as_it_is(kept: Kept, float64: Trace) -> None:
    assert merged(kept, float64, FLOAT32, "here") == kept


def test_another_processor_is_added_and_float64_stays_as_it_was_written(
    kept: Kept, float64: Trace
) -> None:
    after = merged(kept, nudged(float64, 1e-12), MOVED, "elsewhere")
    assert after == {**kept, on("elsewhere"): MOVED}


def test_bits_that_moved_here_drop_the_float32_traces_of_others(kept: Kept, float64: Trace) -> None:
    assert merged(kept, float64, MOVED, "here") == {EVERYWHERE: float64, on("here"): MOVED}


def test_numbers_that_moved_drop_every_other_trace(kept: Kept, float64: Trace) -> None:
    other = nudged(float64, 1e-6)
    assert merged(kept, other, MOVED, "elsewhere") == {EVERYWHERE: other, on("elsewhere"): MOVED}


def test_a_number_may_differ_by_its_rounding_alone(float64: Trace) -> None:
    assert differences(float64, nudged(float64, 1e-12)) == []
    assert len(differences(float64, nudged(float64, 1e-7))) == 1


@pytest.mark.parametrize("place", [1, 2])
def test_a_choice_must_be_the_same(float64: Trace, place: int) -> None:
    other = copy.deepcopy(float64)
    other["steps"][7][place] = [[19]] if place == 1 else [19]
    assert [line.partition(":")[0] for line in differences(float64, other)] == ["step 8"]


def test_a_step_or_a_weight_that_is_missing_is_a_difference(float64: Trace) -> None:
    shorter = copy.deepcopy(float64)
    del shorter["steps"][-1]
    del shorter["weights"]["1.weight"]
    assert len(differences(float64, shorter)) == len(differences(shorter, float64)) == 2


def test_a_weight_that_moved_is_a_difference(float64: Trace) -> None:
    other = copy.deepcopy(float64)
    other["weights"]["1.weight"][1] = "0x1.8p+1"
    assert len(differences(float64, other)) == 1
