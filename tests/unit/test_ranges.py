"""Where a search looks is said beside the option, and only in ways that make sense."""

import dataclasses
from typing import Annotated

import pytest

from recollect import METHODS
from recollect.choices import Option, options_of
from recollect.ranges import Choice, Linear, Log, Range, Whole, declared_ranges

DECLARED = [
    (name, key, looked)
    for name, method in METHODS.items()
    for kind in method.kinds.values()
    if kind is not None
    for key, looked in declared_ranges(kind).items()
]


def ends(looked: Range) -> list[object]:
    return list(looked.values) if isinstance(looked, Choice) else [looked.low, looked.high]


@pytest.mark.parametrize(("method", "key", "looked"), DECLARED)
def test_every_end_of_a_declared_range_is_one_that_the_option_takes(
    method: str, key: str, looked: Range
) -> None:
    option: Option = options_of(method)[key]
    for end in ends(looked):
        assert option.complaint(end) is None
        if option.kind is float:
            assert isinstance(end, float)
        if option.kind is int:
            assert isinstance(end, int)
        assert isinstance(end, bool) == (option.kind is bool)


@pytest.mark.parametrize("method", METHODS)
def test_what_an_option_is_without_a_search_is_in_its_usual_range(method: str) -> None:
    for name, key, looked in DECLARED:
        if name == method and looked.is_usual:
            default = options_of(method)[key].default
            assert default in ends(looked) or (
                not isinstance(looked, Choice)
                and isinstance(default, float)
                and looked.low <= default <= looked.high
            )


def test_a_part_of_the_users_declares_its_own_ranges_and_a_subclass_has_them_too() -> None:
    @dataclasses.dataclass(frozen=True)
    class Mine:
        depth: Annotated[int, Whole(1, 9)] = 3
        note: Annotated[str, "no range"] = ""
        plain: float = 0.0

    class Other(Mine):
        pass

    assert declared_ranges(Mine) == declared_ranges(Other) == {"depth": Whole(1, 9)}


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Log(0.0, 1.0), "`low` is 0.0; a range on a log scale begins above 0"),
        (lambda: Linear(1.0, 1.0), "`low` and `high` are 1.0 and 1.0"),
        (lambda: Linear(float("nan"), 1.0), "pass a lower and a higher end"),
        (lambda: Whole(1, 2.5), "`high` is 2.5; pass a whole number"),  # type: ignore[arg-type]
        (lambda: Whole(True, 3), "`low` is True; pass a whole number"),
        (lambda: Choice(), "`values` is empty"),
    ],
)
def test_a_range_that_makes_no_sense_is_refused(make: object, told: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=told):
        make()
