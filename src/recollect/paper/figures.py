"""Tables and figures of the paper as pictures: its numbers beside ours."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from recollect.paper.numbers import PAPER_SEEDS, Metric
from recollect.paper.tables import ComparedCell, Comparison
from recollect.reports.colours import method_colours
from recollect.reports.figures import HALF_WIDTH, STYLE, WHISKER, panels, save
from recollect.reports.names import benchmark_title, method_title, passes_title
from recollect.reports.sizes import SizeLine, draw_sizes


def draw_comparison(comparison: Comparison, path: Path) -> Path:
    """Draw a table or figure of the paper: ours in colour, the paper's as diamonds.

    As bars, or as lines over slots where its columns are memory sizes.
    """
    with mpl.rc_context(STYLE):
        return save(_compared(comparison), path)


def _compared(comparison: Comparison) -> Figure:
    places: dict[tuple[Metric, str], list[ComparedCell]] = {}
    for cell in comparison.cells:
        places.setdefault((cell.paper.metric, cell.paper.benchmark), []).append(cell)
    by_size = all(cell.paper.column.isdigit() for cell in comparison.cells)
    height = 3.2 if by_size else 0.8 + 0.27 * max(len(cells) for cells in places.values())
    columns = min(2, len(places))
    figure, axes = panels(-(-len(places) // columns), columns, (HALF_WIDTH, height))
    for panel in axes.flat[len(places) :]:
        panel.set_axis_off()
    for panel, ((metric, name), cells) in zip(axes.flat, places.items(), strict=False):
        if by_size:
            draw_sizes(panel, compared_size_lines(cells))
            panel.set_xlabel("slots of the memory")
            panel.legend(fontsize=7)
        else:
            _compared_panel(panel, cells)
        panel.set_title(f"{benchmark_title(name)}: {metric}, %")
    figure.suptitle(comparison.exhibit.title, fontsize=10)
    text = (
        f"{'dots: ours, empty of one or two seeds,' if by_size else 'bars: ours,'} "
        "whiskers 95 % t intervals; "
        f"diamonds: the paper, n = {PAPER_SEEDS}, meaning of its ± not stated"
    )
    figure.supxlabel(text, fontsize=8)
    return figure


def _compared_panel(panel: Any, cells: Sequence[ComparedCell]) -> None:
    colours = method_colours(cell.paper.method for cell in cells)
    labels = []
    for place, cell in enumerate(reversed(cells)):
        colour, ours, reported = colours[cell.paper.method].light, cell.ours, cell.paper.reported
        if ours is not None:
            panel.barh(place, 100 * ours.mean, height=0.7, color=colour, alpha=0.45, lw=0)
            if ours.half_width is not None:
                panel.errorbar(100 * ours.mean, place, xerr=100 * ours.half_width, **WHISKER)
        if reported is not None:
            panel.errorbar(
                reported.mean,
                place,
                xerr=reported.spread,
                fmt="D",
                ms=4,
                mfc="white",
                mec=colour,
                ecolor=colour,
                elinewidth=1,
            )
        labels.append(_place_label(cell))
    panel.set_xlim(left=0)
    panel.set_yticks(range(len(cells)), labels)
    panel.grid(axis="y", visible=False)


def _place_label(cell: ComparedCell) -> str:
    title = method_title(cell.paper.method)
    if cell.variant != "any":
        title += f", {cell.variant}"
    return f"{title} (n={0 if cell.ours is None else cell.ours.n})"


def compared_size_lines(cells: Sequence[ComparedCell]) -> list[SizeLine]:
    """Join the places of a table of the paper, once for each way through the network that has runs.

    The paper's numbers stand by the first of them, or alone.
    """
    lines = []
    for method in dict.fromkeys(cell.paper.method for cell in cells):
        own = [cell for cell in cells if cell.paper.method == method]
        theirs = {c.paper.capacity: c.paper.reported for c in own if c.paper.reported is not None}
        for variant in dict.fromkeys(cell.variant for cell in own):
            ours = {
                cell.paper.capacity: cell.ours
                for cell in own
                if cell.variant == variant and cell.ours is not None
            }
            title = method_title(method)
            title += "" if variant == "any" else f", {passes_title(variant)}"
            if ours:
                lines.append(SizeLine(title, method, ours, theirs))
                theirs = {}
        if theirs:
            lines.append(SizeLine(method_title(method), method, {}, theirs))
    return lines
