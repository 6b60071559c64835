"""What a method makes of a larger memory: its numbers by slots, as lines."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from recollect.experiments.records.record import Record
from recollect.reports.cells import CellRuns, deciding_settings
from recollect.reports.colours import dashes, matplotlib_stroke, method_colours
from recollect.reports.names import method_title
from recollect.reports.statistics import Summary

_ASIDE: Final = 1.03  # lines beside each other would hide each other's whiskers


@dataclass(frozen=True)
class Reported:
    """A number of the paper, in percent: mean +/- spread."""

    mean: float
    spread: float


@dataclass(frozen=True)
class SizeLine:
    """One method with everything but its memory held fixed.

    Attributes:
        label: Its name in the legend.
        method: Name of the method.
        ours: Mean and interval by slots, as shares.
        theirs: What the paper prints, by slots, in per cent.
    """

    label: str
    method: str
    ours: Mapping[int, Summary]
    theirs: Mapping[int, Reported] = field(default_factory=dict)


def size_lines(cells: Sequence[CellRuns], number: Callable[[Record], float]) -> list[SizeLine]:
    """Join the cells of a benchmark that differ in their memory alone; one size is no line."""
    groups: dict[tuple[object, ...], list[CellRuns]] = {}
    for cell in cells:
        settings = sorted(deciding_settings(cell.records[0]).items())
        fixed = tuple((key, value) for key, value in settings if key.split(".")[-1] != "capacity")
        key = (cell.method, cell.protocol, cell.passes, fixed)
        groups.setdefault(key, []).append(cell)
    return [
        SizeLine(
            max((_without_slots(cell) for cell in group), key=len),
            group[0].method,
            {cell.capacity: cell.summary(number) for cell in group},
        )
        for group in groups.values()
        if len(group) > 1
    ]


def draw_sizes(panel: Any, lines: Sequence[SizeLine]) -> None:
    """Draw lines over slots, each as many times more as the last: ours full, the paper's pale."""
    colours = method_colours(line.method for line in lines)
    strokes = dashes(line.method for line in lines)
    sizes: set[int] = set()
    for place, (line, dash) in enumerate(zip(lines, strokes, strict=True)):
        colour, stroke = colours[line.method].light, matplotlib_stroke(dash)
        aside = _ASIDE ** (place - (len(lines) - 1) / 2)
        sizes |= line.ours.keys() | line.theirs.keys()
        if line.ours:
            slots = sorted(line.ours)
            means = [100 * line.ours[size].mean for size in slots]
            at = [size * aside for size in slots]
            panel.plot(at, means, marker="o", ms=4, color=colour, ls=stroke, label=_named(line))
            for x, mean, size in zip(at, means, slots, strict=True):
                ours = line.ours[size]
                # One seed does not tell how well it is known, and the interval of two is wider
                # than the picture: an empty dot.
                if ours.half_width is None or ours.n < 3:
                    panel.plot(x, mean, "o", ms=4, color=colour, mfc="white", zorder=3)
                else:
                    panel.errorbar(x, mean, yerr=100 * ours.half_width, color=colour, capsize=2.5)
        if line.theirs:
            slots = sorted(line.theirs)
            panel.errorbar(
                [size / aside for size in slots],
                [line.theirs[size].mean for size in slots],
                yerr=[line.theirs[size].spread for size in slots],
                fmt="D:",
                ms=4,
                mfc="white",
                color=colour,
                alpha=0.55,
                lw=1,
                label=f"{method_title(line.method)}, the paper",
            )
    panel.set_xscale("log")
    panel.set_xticks(sorted(sizes), [str(size) for size in sorted(sizes)])
    panel.minorticks_off()


def _named(line: SizeLine) -> str:
    counts = [summary.n for summary in line.ours.values()]
    few, most = min(counts), max(counts)
    return f"{line.label} (n={few if few == most else f'{few} to {most}'})"


def _without_slots(cell: CellRuns) -> str:
    parts = cell.label.split(" · ")
    return " · ".join(part for part in parts if part != f"{cell.capacity} slots")
