"""Ranges as a spec says them, and settings drawn from them."""

import math

import pytest

from recollect.experiments.tuning.spaces.space import (
    as_said,
    combinations,
    draw,
    read_range,
    rounded,
    widened,
)
from recollect.ranges import Choice, Linear, Log, Range, Whole

RANGES: list[Range] = [Log(0.01, 0.3), Linear(0.0, 1.0), Whole(1, 8), Choice("a", "b", 3, True)]


@pytest.mark.parametrize("looked", RANGES)
def test_a_range_is_read_as_it_was_said(looked: Range) -> None:
    assert read_range(as_said(looked)) == looked


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (3, "is 3; write"),
        ({"log": [1.0]}, "write"),
        ({"logs": [1.0, 2.0]}, "did you mean `log`"),
        ({"log": ["a", "b"]}, "both ends are numbers"),
        ({"choice": [[1]]}, "a choice is among"),
        ({"log": [-1.0, 2.0]}, "begins above 0"),
        ({"log": [1.0, 2.0], "choice": [1]}, "write"),
    ],
)
def test_what_is_no_range_is_refused(said: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read_range(said)


def test_draws_fill_every_stratum_and_never_change() -> None:
    space: dict[str, Range] = {"lr": Log(0.01, 1.0), "pick": Choice("a", "b"), "n": Whole(1, 4)}
    drawn = draw(space, 8, seed="x")
    strata = sorted(int(math.log10(d["lr"] / 0.01) / 2 * 8) for d in drawn)
    assert strata == list(range(8))
    assert sorted(d["pick"] for d in drawn) == ["a"] * 4 + ["b"] * 4
    assert sorted(d["n"] for d in drawn) == [1, 1, 2, 2, 3, 3, 4, 4]
    assert drawn == draw(space, 8, seed="x") != draw(space, 8, seed="y")
    # Written down: the trials of committed searches were drawn so.
    assert (drawn[0]["lr"], drawn[0]["pick"]) == (0.75, "b")


def test_numbers_have_two_digits_and_stay_inside() -> None:
    assert rounded(0.049172, Log(0.01, 0.3)) == 0.049
    assert rounded(0.2996, Log(0.01, 0.2997)) == 0.2997
    assert rounded(0.12345, Linear(0.0, 1.0)) == 0.12
    assert rounded(-0.5001, Linear(-0.5, 0.5)) == -0.5


def test_a_known_value_widens_a_range_and_one_of_another_kind_is_refused() -> None:
    assert widened(Log(0.01, 0.3), 0.5) == Log(0.01, 0.5)
    assert widened(Log(0.01, 0.3), 0.1) == Log(0.01, 0.3)
    assert widened(Whole(1, 4), 9) == Whole(1, 9)
    assert widened(Choice(10, 5), None) == Choice(10, 5, None)
    with pytest.raises(ValueError, match="on a log scale"):
        widened(Log(0.01, 0.3), 0.0)
    for looked, value in ((Whole(1, 4), 2.5), (Linear(0.0, 1.0), "x"), (Linear(0.0, 1.0), True)):
        with pytest.raises(ValueError, match="is searched over"):
            widened(looked, value)


def test_combinations_are_counted() -> None:
    assert combinations({"a": Choice(1, 2), "b": Whole(1, 3)}) == 6
    assert combinations({"a": Choice(1, 2), "b": Linear(0.0, 1.0)}) == math.inf
