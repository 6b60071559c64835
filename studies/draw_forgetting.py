"""The picture of the front page: what is forgotten without a memory, and kept with one."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from recollect.reports.cells import CellRuns
from recollect.reports.colours import method_colours
from recollect.reports.names import method_title

# Who is drawn, and what a reader who knows no names needs to know of it.
METHODS: Final[Mapping[str, str]] = {
    "van": "no memory",
    "er": "replays 500 stored examples",
    "er-clip-mir": "replays those at risk, clipped",
}


def known_at_the_end(cell: CellRuns) -> list[float]:
    """Return the accuracy on each segment when the stream is over, mean over seeds."""
    shares = [
        [right / of for right, of in zip(run.correct[-1], run.total, strict=True)]
        for run in cell.records
    ]
    return [fmean(segment) for segment in zip(*shares, strict=True)]


def draw_forgetting(cells: Mapping[str, CellRuns], segments: Sequence[str], path: Path) -> None:
    """Draw one group of bars per segment, in the order in which the segments streamed past.

    Args:
        cells: Runs by method; those of `METHODS` are drawn.
        segments: What each segment is called.
        path: Where the picture is written.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    style: Any = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    colours = method_colours(METHODS)
    width = 0.8 / len(METHODS)
    with mpl.rc_context(style):
        figure = Figure(figsize=(9.2, 3.0), layout="constrained")
        panel = figure.subplots()
        for place, (method, words) in enumerate(METHODS.items()):
            shares = known_at_the_end(cells[method])
            xs = [k + (place - (len(METHODS) - 1) / 2) * width for k in range(len(shares))]
            label = f"{method_title(method)}: {words}"
            bars = panel.bar(
                xs, [100 * share for share in shares], 0.92 * width, color=colours[method].light
            )
            bars.set_label(label)
            panel.bar_label(bars, [f"{100 * share:.0f}" for share in shares], fontsize=8)
        panel.set_xticks(range(len(segments)), segments)
        panel.tick_params(axis="x", length=0)
        panel.set_yticks([0, 50, 100])
        panel.set_ylim(0, 108)
        panel.set_ylabel("answers right, %")
        figure.legend(loc="outside upper center", ncols=len(METHODS), frameon=False)
        FigureCanvasAgg(figure)
        figure.savefig(path, dpi=150, metadata={"Software": None})
