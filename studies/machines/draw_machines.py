"""A picture of what rounding does: runs of one seed on two processors, and what comes of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from recollect.experiments.records.record import Record
from recollect.reports.cells import CellRuns, final_accuracy
from recollect.reports.names import method_title
from studies.gains.draw_gains import draw_mean
from studies.machines.machines import PAIRS, makings, minus
from studies.tables import View, pair_title

# By how much of a run the seed fixes: nearly all, some, nothing.
_SEEDS: Final[Mapping[str, str]] = {"er": "#5d5d5d", "er-p": "#1da590", "er-pc-mir": "#a3195b"}
_MAKINGS: Final = ("#476dc9", "#d79d0f", "#5b2a86")


def draw_machines(
    view: View, records: Sequence[Record], elsewhere: Sequence[Record], path: Path
) -> None:
    """Draw each seed's two accuracies, and each comparison over three sets of runs."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    found = makings(view, records, elsewhere)
    style: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with mpl.rc_context(style):
        figure = Figure(figsize=(9.2, 4.2))
        figure.set_layout_engine("constrained")
        seeds, gains = figure.subplots(1, 2, width_ratios=(1, 1.15))
        (here, ones), (there, others), *_ = found.items()
        _draw_seeds(seeds, ones, others)
        seeds.set_xlabel(f"accuracy, %: {here}")
        seeds.set_ylabel(f"accuracy, %: {there}")
        _draw_gains(gains, found)
        FigureCanvasAgg(figure)
        figure.savefig(path, dpi=150, metadata={"Software": None})


def _draw_seeds(panel: Any, ones: Mapping[str, CellRuns], others: Mapping[str, CellRuns]) -> None:
    for method, colour in _SEEDS.items():
        here, there = (found[method].by_seed(final_accuracy) for found in (ones, others))
        pairs = [(100 * here[seed], 100 * there[seed]) for seed in here.keys() & there.keys()]
        xs, ys = zip(*pairs, strict=True)
        panel.plot(xs, ys, "o", color=colour, ms=5, alpha=0.75, label=method_title(method))
    panel.axline((80, 80), slope=1, color="#9aa3ad", lw=1, zorder=0)
    panel.set_aspect("equal")
    panel.grid(color="#e0e3e8")
    panel.set_axisbelow(True)
    panel.set_title("A dot a seed: the same run twice", loc="left", fontweight="bold")
    panel.legend(frameon=False, loc="upper left")


def _draw_gains(panel: Any, found: Mapping[str, Mapping[str, CellRuns]]) -> None:
    for (which, cells), colour, offset in zip(
        found.items(), _MAKINGS, (0.25, 0.0, -0.25), strict=False
    ):
        panel.plot([], [], "o", color=colour, label=which)
        for k, (one, other) in enumerate(PAIRS):
            if (difference := minus(cells, one, other)) is not None:
                draw_mean(panel, difference, offset - k, colour)
    panel.axvline(0, color="#9aa3ad", lw=1)
    panel.grid(axis="x", color="#e0e3e8")
    panel.set_axisbelow(True)
    panel.tick_params(axis="y", length=0)
    panel.set_yticks([-k for k in range(len(PAIRS))], [pair_title(*pair) for pair in PAIRS])
    panel.set_xlabel("accuracy, points")
    panel.set_title("What is said of methods", loc="left", fontweight="bold")
    panel.legend(frameon=False, loc="upper left", fontsize=8)
