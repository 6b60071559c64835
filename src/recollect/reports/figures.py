"""Static figures for papers and slides: PNG, SVG or PDF, in the colours of the page."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal, get_args

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from recollect.errors import RecollectError
from recollect.experiments.records.record import Record
from recollect.reports.cells import (
    CellRuns,
    by_benchmark,
    final_accuracy,
    final_forgetting,
    group_cells,
)
from recollect.reports.colours import dashes_of, matplotlib_stroke, method_colours, ramp
from recollect.reports.names import benchmark_title
from recollect.reports.series import accuracy_curve, mean_matrix, memory_over_time
from recollect.reports.sizes import draw_sizes, size_lines

FigureKind = Literal["bars", "curves", "matrix", "memory", "sizes"]
KINDS: Final[tuple[str, ...]] = get_args(FigureKind)
FORMATS: Final = (".png", ".svg", ".pdf")
STYLE: Final[Any] = {  # matplotlib types every key by name
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#9aa3ad",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e0e3e8",
    "legend.frameon": False,
    "svg.hashsalt": "recollect",  # the same figure is the same file
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}
WHISKER: Final = {"fmt": "none", "ecolor": "#1a1d21", "elinewidth": 1.4, "capsize": 3, "zorder": 3}
HALF_WIDTH: Final = 4.6  # inches of one of two panels side by side


def write_figure(records: Sequence[Record], kind: str, path: Path) -> Path:
    """Draw records as one static figure.

    Args:
        records: Of any benchmarks, methods and seeds.
        kind: `bars` (accuracy and forgetting with intervals), `curves` (any-time accuracy with
            bands), `matrix` (accuracy after each segment), `memory` (slots by class over time) or
            `sizes` (accuracy and forgetting by slots, of methods run with several memories).
        path: A .png, .svg or .pdf file.

    Raises:
        RecollectError: `kind` or the ending of `path` is unknown, or there is nothing to draw.
    """
    drawers: dict[str, Callable[[dict[str, list[CellRuns]]], Figure]] = {
        "bars": _bars,
        "curves": _curves,
        "matrix": _matrices,
        "memory": _memories,
        "sizes": _sizes,
    }
    if kind not in drawers:
        raise RecollectError(f"`kind` is {kind!r}; choose one of {', '.join(KINDS)}.")
    groups = by_benchmark(group_cells(records))
    if not groups:
        raise RecollectError("there are 0 finished runs to draw; run something first.")
    with mpl.rc_context(STYLE):
        return save(drawers[kind](groups), path)


def save(figure: Figure, path: Path) -> Path:
    """Write a figure as the ending of `path` says."""
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise RecollectError(f"`{path}` ends in {ending!r}; end it in {', '.join(FORMATS)}.")
    if not path.parent.is_dir():
        raise RecollectError(f"`{path.parent}` is not a folder; create it, or write elsewhere.")
    about = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(ending, {})
    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=200, metadata=about, bbox_inches="tight")
    return path


def panels(rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, Any]:
    """Lay out panels of `size` inches each."""
    figure = Figure(figsize=(columns * size[0], rows * size[1]), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def _height_beside(num_lines: int) -> float:
    """Return the inches of a panel that a legend of so many lines fits beside."""
    return max(3.2, 0.9 + 0.19 * num_lines)


def _legend_beside(panel: Any) -> None:
    """Put the legend to the right. It begins at the panel's top: a title, above, may be wider."""
    panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _bars(groups: dict[str, list[CellRuns]]) -> Figure:
    height = 0.7 + 0.27 * max(len(cells) for cells in groups.values())
    figure, axes = panels(len(groups), 2, (HALF_WIDTH, height))
    for row, (name, cells) in zip(axes, groups.items(), strict=True):
        for panel, number, title in (
            (row[0], final_accuracy, "average accuracy, %"),
            (row[1], final_forgetting, "forgetting, %"),
        ):
            _bar_panel(panel, cells, number)
            panel.set_title(f"{benchmark_title(name)}: {title}")
        row[1].set_yticklabels([])  # those of its neighbour
    figure.supxlabel("bars: means; whiskers: 95 % t intervals; dots: seeds", fontsize=8)
    return figure


def _bar_panel(panel: Any, cells: Sequence[CellRuns], number: Callable[[Record], float]) -> None:
    colours = method_colours(cell.method for cell in cells)
    for place, cell in enumerate(reversed(cells)):
        summary = cell.summary(number)
        colour = colours[cell.method].light
        panel.barh(place, 100 * summary.mean, height=0.7, color=colour, alpha=0.45, lw=0)
        values = [100 * value for value in cell.by_seed(number).values()]
        places = [place + offset for offset in _scattered(len(values))]
        panel.plot(values, places, "o", ms=2.5, mew=0, color=colour, alpha=0.5)
        if summary.half_width is not None:
            panel.errorbar(100 * summary.mean, place, xerr=100 * summary.half_width, **WHISKER)
    labels = [f"{cell.label} (n={len(cell.records)})" for cell in reversed(cells)]
    panel.set_yticks(range(len(cells)), labels)
    panel.grid(axis="y", visible=False)


def _scattered(count: int) -> list[float]:
    """Spread dots across a bar where they would hide each other, the same way every time."""
    if count <= 5:
        return [0.0] * count
    return [0.5 * (0.618034 * index % 1) - 0.25 for index in range(count)]  # golden ratio: even


def _curves(groups: dict[str, list[CellRuns]]) -> Figure:
    height = _height_beside(max(len(cells) for cells in groups.values()))
    figure, axes = panels(len(groups), 1, (7.2, height))
    num_drawn = 0
    for (panel,), (name, cells) in zip(axes, groups.items(), strict=True):
        colours, dashes = method_colours(c.method for c in cells), dashes_of(cells)
        for cell in cells:
            curve = accuracy_curve(cell)
            if curve is None:
                continue
            num_drawn += 1
            colour = colours[cell.method].light
            stroke = matplotlib_stroke(dashes[cell.name])
            means = [100 * summary.mean for summary in curve.summaries]
            label = f"{cell.label} (n={len(cell.records)})"
            panel.plot(curve.seen, means, color=colour, ls=stroke, lw=1.6, label=label)
            low = [100 * s.low for s in curve.summaries if s.low is not None]
            high = [100 * s.high for s in curve.summaries if s.high is not None]
            if len(low) == len(curve.seen):
                panel.fill_between(curve.seen, low, high, color=colour, alpha=0.12, lw=0)
        panel.set_title(f"{benchmark_title(name)}: accuracy over the segments met so far, %")
        panel.set_xlabel("examples seen; bands: 95 % t intervals over seeds")
        panel.set_ylim(max(0, panel.get_ylim()[0]), min(101, panel.get_ylim()[1]))
        _legend_beside(panel)
    if not num_drawn:
        raise RecollectError("no run has an any-time curve; there is nothing to draw.")
    return figure


def _matrices(groups: dict[str, list[CellRuns]]) -> Figure:
    columns = max(len(cells) for cells in groups.values())
    columns = min(columns, 4)
    cells = [(name, cell) for name, group in groups.items() for cell in group]
    rows = -(-len(cells) // columns)
    figure, axes = panels(rows, columns, (2.5, 2.5))
    for panel in axes.flat[len(cells) :]:
        panel.set_axis_off()
    for panel, (name, cell) in zip(axes.flat, cells, strict=False):
        matrix = mean_matrix(cell)
        size = len(matrix)
        shares = [[float("nan") if v is None else 100 * v for v in row] for row in matrix]
        panel.imshow(shares, cmap="Blues", vmin=0, vmax=100, aspect="equal")
        for i, row in enumerate(shares):
            for j, value in enumerate(row):
                if j <= i and size <= 10:
                    ink = "white" if value > 55 else "black"
                    panel.text(j, i, f"{value:.0f}", ha="center", va="center", size=6, color=ink)
        panel.grid(visible=False)
        panel.set_xticks(range(size), range(1, size + 1), size=6)
        panel.set_yticks(range(size), range(1, size + 1), size=6)
        panel.set_title(f"{benchmark_title(name)}, {cell.label}", fontsize=8)
    figure.supxlabel("accuracy, %, on a segment (column) after a segment (row)", fontsize=8)
    return figure


def _memories(groups: dict[str, list[CellRuns]]) -> Figure:
    held = [
        (name, cell, memory)
        for name, cells in groups.items()
        for cell in cells
        if (memory := memory_over_time(cell)) is not None
    ]
    if not held:
        raise RecollectError("no run has a memory; there is nothing to draw.")
    columns = min(4, len(held))
    figure, axes = panels(-(-len(held) // columns), columns, (2.6, 1.9))
    for panel in axes.flat[len(held) :]:
        panel.set_axis_off()
    for panel, (name, cell, memory) in zip(axes.flat, held, strict=False):
        steps = max(1, len(memory.names) - 1)
        colours = [ramp(index / steps) for index in range(len(memory.names))]
        heights = list(zip(*memory.counts, strict=True))
        panel.stackplot(memory.seen, heights, colors=colours, lw=0)
        panel.set_title(f"{benchmark_title(name)}, {cell.label}", fontsize=8)
        panel.tick_params(labelsize=7)
        panel.set_xlim(0, memory.seen[-1])
        panel.margins(y=0)
    text = "slots by class over examples seen, mean over seeds; first class at the bottom, violet"
    figure.supxlabel(text, fontsize=8)
    return figure


def _sizes(groups: dict[str, list[CellRuns]]) -> Figure:
    metrics = ((final_accuracy, "average accuracy, %"), (final_forgetting, "forgetting, %"))
    drawn = {name: cells for name, cells in groups.items() if size_lines(cells, final_accuracy)}
    if not drawn:
        raise RecollectError(
            "no method was run with several memories and the same settings; run "
            "`recollect run … --memory 100 --memory 500` first."
        )
    most = max(len(size_lines(cells, final_accuracy)) for cells in drawn.values())
    figure, axes = panels(len(drawn), 2, (HALF_WIDTH, _height_beside(most)))
    for row, (name, cells) in zip(axes, drawn.items(), strict=True):
        for panel, (number, title) in zip(row, metrics, strict=True):
            draw_sizes(panel, size_lines(cells, number))
            panel.set_title(f"{benchmark_title(name)}: {title}")
            panel.set_xlabel("slots of the memory")
        _legend_beside(row[1])
    figure.supxlabel(
        "dots: means, empty of one or two seeds; whiskers: 95 % t intervals", fontsize=8
    )
    return figure
