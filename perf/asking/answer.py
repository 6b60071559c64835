"""What a question comes back with: raw times, ratios with their spread, tables and remarks.

An answer is plain JSON on disk, so that a page can be written again without measuring again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median, quantiles
from typing import Any

from perf.asking.targets import target_of


@dataclass(frozen=True)
class Ratio:
    """Cost of `what` over cost of `than`: the median of repetitions' own ratios, and quartiles."""

    what: str
    than: str
    shape: str
    median: float
    low: float
    high: float
    repetitions: int
    target: float | None = None
    at_least: bool = False  # a target to reach, not one to stay below

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met; None without one."""
        if self.target is None:
            return None
        return self.median >= self.target if self.at_least else self.median <= self.target


@dataclass(frozen=True)
class Table:
    """Rows to print as they are; the last column may be a remark."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | float]]


@dataclass(frozen=True)
class Answer:
    """All that one question measured.

    Attributes:
        times: Every measured value, by contestant, in order of repetition.
        unit: What one of them is.
        points: Numbers for a plot.
        printed: What a question of the older kind, which only prints, said.
    """

    title: str
    command: str
    settings: Mapping[str, str | int | float]
    unit: str = ""
    times: Mapping[str, Sequence[float]] = field(default_factory=dict)
    ratios: Sequence[Ratio] = ()
    tables: Sequence[Table] = ()
    remarks: Sequence[str] = ()
    points: Sequence[Mapping[str, Any]] = ()
    printed: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return lists, dicts, numbers and strings only."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Answer":
        """Build the answer that `to_json` described."""
        return cls(
            **{
                **stored,
                "ratios": [Ratio(**ratio) for ratio in stored["ratios"]],
                "tables": [Table(**table) for table in stored["tables"]],
            }
        )


def ratio(
    what: str, than: str, shape: str, times: Mapping[str, Sequence[float]], *, named: str = ""
) -> Ratio:
    """Divide repetition by repetition, so that noise which hits both cancels.

    Args:
        what: A key of `times`: whose cost.
        than: Another: over whose.
        shape: Which model and data, as it is called in the table of targets.
        times: As in `Answer`.
        named: What to call `what` on the page, if not by its key.
    """
    each = [a / b for a, b in zip(times[what], times[than], strict=True)]
    return ratio_of(named or what, than, shape, each)


def ratio_of(what: str, than: str, shape: str, each: Sequence[float]) -> Ratio:
    """Summarise ratios that were taken one a repetition."""
    low, high = quartiles(each)
    target, at_least = target_of(what, than, shape)
    return Ratio(what, than, shape, median(each), low, high, len(each), target, at_least)


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """Return the lower and the upper one; of one value, itself."""
    if len(values) == 1:
        return values[0], values[0]
    low, _, high = quantiles(values, n=4, method="inclusive")
    return low, high


def lines_of(answer: Answer) -> list[str]:
    """Say an answer in a terminal."""
    lines = [answer.title, *answer.printed.splitlines()]
    lines.append(", ".join(f"{key} {value}" for key, value in answer.settings.items()))
    for name, values in answer.times.items():
        lines.append(f"  {name:<34}{median(values):>14.6g} {answer.unit}")
    for found in answer.ratios:
        verdict = {True: "met", False: "missed", None: ""}[found.is_met]
        sign = ">=" if found.at_least else "<="
        target = "" if found.target is None else f"target {sign} {found.target:g}: {verdict}"
        spread = f"({found.low:.3g} to {found.high:.3g}, n = {found.repetitions})"
        pair = f"{found.what} / {found.than} [{found.shape}]"
        lines.append(f"  {pair:<64}{found.median:6.3g} {spread:<28} {target}")
    for table in answer.tables:
        lines += ["", f"  {table.title}", "  " + " | ".join(table.columns)]
        lines += ["  " + " | ".join(_cell(value) for value in row) for row in table.rows]
    return lines + [f"  note: {remark}" for remark in answer.remarks]


def _cell(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.3g}"
