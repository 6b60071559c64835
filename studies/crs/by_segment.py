"""Where a storage's gain sits: in which segments, and whether slots explain it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import correlation, fmean
from typing import Any, Final

from recollect.experiments.records.record import Record
from recollect.reports.cells import CellRuns
from recollect.reports.numbers import percent
from recollect.reports.statistics import summarise
from studies.gains.draw_gains import draw_mean
from studies.tables import signed

_COLOURS: Final = ("#476dc9", "#1da590", "#8a8f98", "#d79d0f", "#c0392b")


@dataclass(frozen=True)
class SegmentChange:
    """What another storage does to one segment, seed by seed; entries of a pair are theirs, ours.

    Attributes:
        slots: Slots of its classes at the end.
        known: Accuracy on it at the end.
    """

    slots: Sequence[tuple[int, int]]
    known: Sequence[tuple[float, float]]

    @property
    def gained(self) -> list[float]:
        """Accuracy gained, seed by seed."""
        return [ours - theirs for theirs, ours in self.known]

    @property
    def more_slots(self) -> list[int]:
        """Slots gained, seed by seed."""
        return [ours - theirs for theirs, ours in self.slots]

    def correlation(self) -> tuple[float, float, float] | None:
        """Return Pearson's r of slots and accuracy gained over seeds, and its 95 % interval.

        The interval is Fisher's. None for fewer than four seeds, or where nothing varies.
        """
        slots, gained = self.more_slots, self.gained
        if len(slots) < 4 or len(set(slots)) == 1 or len(set(gained)) == 1:
            return None
        r = correlation(slots, gained)
        z, half = math.atanh(max(-1 + 1e-12, min(1 - 1e-12, r))), 1.96 / math.sqrt(len(slots) - 3)
        return r, math.tanh(z - half), math.tanh(z + half)


def changes(baseline: CellRuns, cell: CellRuns) -> list[SegmentChange]:
    """Compare two methods of a class-incremental benchmark on the seeds that both have."""
    theirs = {record.seed: record for record in baseline.records}
    pairs = [(theirs[ours.seed], ours) for ours in cell.records if ours.seed in theirs]
    num_segments = len(cell.records[0].total)
    return [
        SegmentChange(
            [(_slots(a, segment), _slots(b, segment)) for a, b in pairs],
            [(_known(a, segment), _known(b, segment)) for a, b in pairs],
        )
        for segment in range(num_segments)
    ]


def _slots(record: Record, segment: int) -> int:
    memory = record.memory[-1]
    held = dict(zip(memory.classes, memory.counts, strict=True))
    # Classes come in ascending order. One that has lost all its slots is not listed; the last,
    # which has just streamed past, is.
    width = (max(held) + 1) // len(record.total)
    return sum(held.get(label, 0) for label in range(segment * width, (segment + 1) * width))


def _known(record: Record, segment: int) -> float:
    return record.correct[-1][segment] / record.total[segment]


def by_segment_table(baseline: CellRuns, cell: CellRuns) -> str:
    """Return one row per segment: slots and accuracy at the end, and how they go together."""
    lines = [
        "| segment | slots, ER | CRS | known at the end, ER | CRS | difference "
        "| r of slots and accuracy gained |",
        "|---|---|---|---|---|---|---|",
    ]
    for number, change in enumerate(changes(baseline, cell), start=1):
        slots = [f"{fmean(side):.0f}" for side in zip(*change.slots, strict=True)]
        known = [percent(fmean(side)) for side in zip(*change.known, strict=True)]
        entries = [str(number), *slots, *known, signed(summarise(change.gained)), _r(change)]
        lines.append("| " + " | ".join(entries) + " |")
    return "\n".join(lines)


def _r(change: SegmentChange) -> str:
    found = change.correlation()
    if found is None:
        return ""
    r, low, high = (f"{value:+.2f}".replace("-", "\N{MINUS SIGN}") for value in found)
    return f"{r} [{low}, {high}]"


def draw_by_segment(baseline: CellRuns, cell: CellRuns, path: Path) -> None:
    """Draw the gains of five segments, and slots against accuracy for the two that gain most."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    found = changes(baseline, cell)
    style: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with mpl.rc_context(style):
        figure = Figure(figsize=(9.2, 3.1), layout="constrained")
        left, *right = figure.subplots(1, 3, gridspec_kw={"width_ratios": [1.25, 1, 1]})
        left.axvline(0, color="#9aa3ad", lw=1)
        for place, (change, colour) in enumerate(zip(found, _COLOURS, strict=True)):
            draw_mean(left, summarise(change.gained), -place, colour)
        left.set_yticks(
            [-place for place in range(len(found))],
            [f"segment {place + 1}" for place in range(len(found))],
        )
        left.tick_params(axis="y", length=0)
        left.set_xlabel("accuracy gained at the end, points")
        gaining = sorted(
            sorted(range(len(found)), key=lambda k: fmean(found[k].gained), reverse=True)[:2]
        )
        for panel, segment in zip(right, gaining, strict=True):
            change = found[segment]
            panel.axhline(0, color="#9aa3ad", lw=1)
            panel.axvline(0, color="#9aa3ad", lw=1)
            gained = [100 * gain for gain in change.gained]
            panel.plot(change.more_slots, gained, "o", color=_COLOURS[segment], ms=5)
            panel.set_title(f"segment {segment + 1}: r {_r(change)}", fontsize=9)
            panel.set_xlabel("slots gained")
        right[0].set_ylabel("accuracy gained, points")
        for panel in (left, *right):
            panel.grid(color="#e0e3e8")
            panel.set_axisbelow(True)
        FigureCanvasAgg(figure)
        figure.savefig(path, dpi=150, metadata={"Software": None})
