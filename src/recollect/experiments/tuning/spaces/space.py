"""Where a search looks: ranges as a spec says them, and settings drawn evenly from them."""

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

from recollect.choices import Value
from recollect.experiments.tuning.study import Settings
from recollect.ranges import Choice, Linear, Log, Range, Whole
from recollect.suggestions import nearest, shown

Space = Mapping[str, Range]

_KINDS: Final[Mapping[str, type]] = {"log": Log, "linear": Linear, "whole": Whole, "choice": Choice}


def read_range(said: object) -> Range:
    """Read a range as a spec says it: `{ log = [0.01, 0.3] }`, `{ choice = ["a", "b"] }`.

    Raises:
        ValueError: It is none.
    """
    rule = (
        "write { log = [0.01, 0.3] }, { linear = [a, b] }, { whole = [a, b] }, { choice = [...] }"
    )
    if not isinstance(said, Mapping) or len(said) != 1:
        raise ValueError(f"is {shown(said)}; {rule}, or true or false.")
    ((kind, values),) = said.items()
    if kind not in _KINDS:
        raise ValueError(f"{shown(kind)} is no kind of range; {nearest(str(kind), _KINDS)}")
    if not isinstance(values, list) or (kind != "choice" and len(values) != 2):
        raise ValueError(f"is {shown(said)}; {rule}.")
    if kind == "choice":
        if not all(isinstance(value, Value) for value in values):
            raise ValueError(
                f"is {shown(said)}; a choice is among texts, numbers and truth values."
            )
        return Choice(*values)
    if not all(isinstance(end, int | float) and not isinstance(end, bool) for end in values):
        raise ValueError(f"is {shown(said)}; both ends are numbers.")
    found: Range = _KINDS[kind](*values)
    return found


def range_in_words(looked: Range) -> str:
    """Return a range as a person reads it.

    Example:
        >>> range_in_words(Log(0.01, 0.3)), range_in_words(Choice("a", "b"))
        ('0.01 to 0.3, log', 'a | b')
    """
    if isinstance(looked, Choice):
        return " | ".join("none" if v is None else str(v).lower() for v in looked.values)
    scale = ", log" if isinstance(looked, Log) else ", whole" if isinstance(looked, Whole) else ""
    return f"{looked.low:g} to {looked.high:g}{scale}"


def as_said(looked: Range) -> dict[str, list[Any]]:
    """Return a range as a spec says it."""
    if isinstance(looked, Choice):
        return {looked.kind: list(looked.values)}
    return {looked.kind: [looked.low, looked.high]}


def widened(looked: Range, value: Value) -> Range:
    """Return the range with a value in it.

    Raises:
        ValueError: The value is of another kind.
    """
    if isinstance(looked, Choice):
        is_there = any(value is known or value == known for known in looked.values)
        return looked if is_there else Choice(*looked.values, value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or (isinstance(looked, Whole) and not isinstance(value, int)):
        raise ValueError(f"is {shown(value)}, but is searched over {range_in_words(looked)}.")
    assert isinstance(value, int | float)
    if isinstance(looked, Log) and value <= 0:
        raise ValueError(f"is {shown(value)}, but is searched on a log scale; give it above 0.")
    low, high = min(looked.low, value), max(looked.high, value)
    if isinstance(looked, Whole):
        return Whole(int(low), int(high))
    return Log(low, high) if isinstance(looked, Log) else Linear(low, high)


def draw(space: Space, count: int, *, seed: str) -> list[Settings]:
    """Draw settings: each range is cut into `count` strata, and each stratum is used once.

    One range alone becomes an even grid in a random order; several are paired at random. Python
    promises that `random()` of a seeded generator never changes, so neither do trials.
    """
    rng = random.Random(seed)
    columns: dict[str, list[Any]] = {}
    for key, looked in space.items():
        order = sorted(range(count), key=[rng.random() for _ in range(count)].__getitem__)
        middle = [(stratum + 0.5) / count for stratum in order]
        columns[key] = [_value(looked, share) for share in middle]
    return [{key: column[row] for key, column in columns.items()} for row in range(count)]


def _value(looked: Range, share: float) -> Value:
    if isinstance(looked, Choice):
        return looked.values[int(share * len(looked.values))]
    if isinstance(looked, Whole):
        return looked.low + int(share * (looked.high - looked.low + 1))
    if isinstance(looked, Log):
        return rounded(looked.low * (looked.high / looked.low) ** share, looked)
    return rounded(looked.low + share * (looked.high - looked.low), looked)


def rounded(value: float, looked: Log | Linear) -> float:
    """Round to two digits inside the range: nobody wants to read a learning rate of 0.049172."""
    is_log = isinstance(looked, Log)
    magnitude = abs(value) if is_log else (looked.high - looked.low) / 10
    few = round(value, 1 - math.floor(math.log10(magnitude)))
    return min(max(few, float(looked.low)), float(looked.high))


def is_same(first: Settings, second: Settings) -> bool:
    """Whether two settings are alike, also in type: True is not 1."""
    return repr(sorted(first.items())) == repr(sorted(second.items()))


def combinations(space: Space) -> float:
    """Count the different settings of a space; infinite if a range has numbers without end."""
    sizes: Sequence[float] = [
        len(looked.values)
        if isinstance(looked, Choice)
        else looked.high - looked.low + 1
        if isinstance(looked, Whole)
        else math.inf
        for looked in space.values()
    ]
    return math.prod(sizes)
