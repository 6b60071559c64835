"""Accuracy and forgetting by the size of the memory, where methods were run with several."""

from collections.abc import Callable, Sequence
from typing import Final

from recollect.experiments.records.record import Record
from recollect.reports.cells import CellRuns, final_accuracy, final_forgetting
from recollect.reports.colours import dashes
from recollect.reports.numbers import percent
from recollect.reports.page.parts import escape, figure, legend, line_through, owned, table
from recollect.reports.page.plots import Axes, line_chart
from recollect.reports.sizes import size_lines
from recollect.reports.statistics import Summary

_NUMBERS: Final = (
    (final_accuracy, "Average accuracy at the end, %"),
    (final_forgetting, "Forgetting, %"),
)


def by_size(cells: Sequence[CellRuns]) -> str:
    """Return a chart of each number; nothing if all memories are of one size."""
    charts = "".join(_chart(cells, number, title) for number, title in _NUMBERS)
    if not charts:
        return ""
    note = "Lines join means over seeds, bands are 95 % intervals, thin uprights the sizes."
    return f'<h3>By memory size</h3><p class="note">{note}</p><div class="charts">{charts}</div>'


def _chart(cells: Sequence[CellRuns], number: Callable[[Record], float], title: str) -> str:
    found = size_lines(cells, number)
    # Methods can only be drawn over each other at sizes that all of them have.
    sizes = sorted(set.intersection(*(set(line.ours) for line in found))) if found else []
    if len(sizes) < 2:
        return ""
    lines = []
    for line, dash in zip(found, dashes(line.method for line in found), strict=True):
        at = [line.ours[size] for size in sizes]
        shown = [_told(summary) for summary in at]
        lines.append(line_through(at, shown, label=line.label, method=line.method, dash=dash))
    axes = Axes(
        tuple(sizes),
        1.0,
        f"{title}, by slots. Arrow keys read it out.",
        x_unit="slots",
        percent=True,
        boundaries=tuple(sizes),
    )
    rows = [(owned(line.method), [escape(line.label), *line.shown]) for line in lines]
    numbers = table(["Method", *(f"{size:,} slots" for size in sizes)], rows, caption=title)
    return figure(f"{title}, by slots", line_chart(lines, axes) + legend(lines), numbers)


def _told(summary: Summary) -> str:
    spread = "" if summary.half_width is None else f" ± {percent(summary.half_width)}"
    return f"{percent(summary.mean)}{spread} (n={summary.n})"
