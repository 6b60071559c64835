"""Where a search looks for an option: a range and its scale, said beside the option itself.

    from typing import Annotated
    from recollect.ranges import Log

    step_size: Annotated[float, Log(3.0, 40.0)] = 10.0

`recollect tune` searches what is declared so. A range with `is_usual=False` is used only if asked
for: it says where the option makes sense, not that a usual search should spend trials on it.
"""

import math
import typing
from dataclasses import dataclass, replace
from typing import ClassVar

from recollect.choices import Value


@dataclass(frozen=True)
class Linear:
    """Numbers between two ends, all alike.

    Args:
        low: The lower end.
        high: The upper end.
        is_usual: Whether a search that names no options covers this one.
    """

    kind: ClassVar[str] = "linear"

    low: float
    high: float
    is_usual: bool = True

    def __post_init__(self) -> None:
        _check_ends(self.low, self.high)


@dataclass(frozen=True)
class Log:
    """Numbers between two ends above 0, as many between 1 and 10 as between 10 and 100.

    Args:
        low: The lower end.
        high: The upper end.
        is_usual: Whether a search that names no options covers this one.
    """

    kind: ClassVar[str] = "log"

    low: float
    high: float
    is_usual: bool = True

    def __post_init__(self) -> None:
        _check_ends(self.low, self.high)
        if self.low <= 0:
            raise ValueError(f"`low` is {self.low!r}; a range on a log scale begins above 0.")


@dataclass(frozen=True)
class Whole:
    """Whole numbers between two ends, both included.

    Args:
        low: The lower end.
        high: The upper end.
        is_usual: Whether a search that names no options covers this one.
    """

    kind: ClassVar[str] = "whole"

    low: int
    high: int
    is_usual: bool = True

    def __post_init__(self) -> None:
        for name, value in (("low", self.low), ("high", self.high)):
            if not isinstance(value, int) or isinstance(value, bool):
                raise ValueError(f"`{name}` is {value!r}; pass a whole number.")
        _check_ends(self.low, self.high)


@dataclass(frozen=True, init=False)
class Choice:
    """One of some values, in no order.

    Args:
        *values: Texts, numbers, truth values or None.
        is_usual: Whether a search that names no options covers this one.
    """

    kind: ClassVar[str] = "choice"

    values: tuple[Value, ...]
    is_usual: bool = True

    def __init__(self, *values: Value, is_usual: bool = True) -> None:
        if not values:
            raise ValueError("`values` is empty; pass at least one.")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "is_usual", is_usual)


Range = Linear | Log | Whole | Choice


def declared_ranges(part: type) -> dict[str, Range]:
    """Return the ranges that a class declares beside its annotated fields.

    Example:
        >>> class Part:
        ...     weight: typing.Annotated[float, Log(0.1, 10.0)] = 1.0
        ...     name: str = ""
        >>> declared_ranges(Part)
        {'weight': Log(low=0.1, high=10.0, is_usual=True)}
    """
    found = {}
    for name, hint in typing.get_type_hints(part, include_extras=True).items():
        for said in getattr(hint, "__metadata__", ()):
            if isinstance(said, Range):
                found[name] = said
    return found


def as_usual(looked: Range) -> Range:
    """Return the same range as one that a search covers without being asked."""
    return Choice(*looked.values) if isinstance(looked, Choice) else replace(looked, is_usual=True)


def _check_ends(low: float, high: float) -> None:
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(
            f"`low` and `high` are {low!r} and {high!r}; pass a lower and a higher end."
        )
