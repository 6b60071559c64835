"""A picture of what PGD and CRS add: as the paper prints it, and as our runs have it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from recollect.paper.numbers import CAPACITY, Metric
from recollect.paper.tables import Comparison, JudgedClaim, Variant
from recollect.reports.names import benchmark_title
from recollect.reports.statistics import Summary
from studies.tables import pair_title

PAIRS: Final = (
    ("er-p", "er"),
    ("er-c", "er"),
    ("er-pc", "er"),
    ("er-pc-mir", "er-mir"),
)
_PANELS: Final[Sequence[tuple[Metric, str]]] = (
    ("accuracy", "accuracy, points (right is better)"),
    ("forgetting", "forgetting, points (left is better)"),
)
PAPER_COLOUR, TUNED_COLOUR, LINEAGE_COLOUR = "#5d5d5d", "#476dc9", "#d79d0f"


@dataclass(frozen=True)
class Gain:
    """One method minus another: three answers.

    Attributes:
        label: Which two.
        theirs: The paper's difference, as a share; None where it prints no numbers.
        tuned: Ours with settings from validation data.
        lineage: Ours with the learning rate, and under BatchNorm the passes, of the code the paper
            builds on.
    """

    label: str
    theirs: float | None
    tuned: Summary | None
    lineage: Summary | None


def gains(
    benchmark: str, metric: Metric, tuned: Sequence[Comparison], lineage: Sequence[Comparison]
) -> list[Gain]:
    """Return what there is to draw for a benchmark, one line a pair of methods."""
    found = []
    for better, worse in PAIRS:
        ours = _claim(tuned, (metric, benchmark, better, worse), "joint")
        theirs = _claim(lineage, (metric, benchmark, better, worse), "separate")
        if ours is not None and theirs is not None:
            differences = ours.difference.summary, theirs.difference.summary
            found.append(Gain(pair_title(better, worse), ours.theirs, *differences))
    return found


def _claim(
    comparisons: Sequence[Comparison], wanted: tuple[Metric, str, str, str], passes: Variant
) -> JudgedClaim | None:
    """Find a claim; where the paper makes it twice, the one that has the paper's numbers."""
    fitting = [
        judged
        for comparison in comparisons
        for judged in comparison.claims
        if judged.variant in ("any", passes)
        and judged.claim.capacity == CAPACITY[judged.claim.benchmark]
        and (
            judged.claim.metric,
            judged.claim.benchmark,
            judged.claim.better,
            judged.claim.worse,
        )
        == wanted
    ]
    return max(fitting, key=lambda judged: judged.theirs is not None, default=None)


def draw_gains(tuned: Sequence[Comparison], lineage: Sequence[Comparison], path: Path) -> None:
    """Draw every benchmark with a scale of its own: dots are means, whiskers 95 % intervals."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    style: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with mpl.rc_context(style):
        figure = Figure(figsize=(9.2, 7.6))
        figure.set_layout_engine("constrained")
        grid: Any = figure.subplots(len(CAPACITY), len(_PANELS), sharey="row")
        for row, benchmark in zip(grid, CAPACITY, strict=True):
            for panel, (metric, _) in zip(row, _PANELS, strict=True):
                lines = gains(benchmark, metric, tuned, lineage)
                _draw_panel(panel, lines)
            row[0].set_yticks([-k for k in range(len(lines))], [line.label for line in lines])
            row[0].set_title(benchmark_title(benchmark), loc="left", fontweight="bold")
        for panel, (_, title) in zip(grid[-1], _PANELS, strict=True):
            panel.set_xlabel(title)
        first = grid[0][0]
        first.plot([], [], "D", color=PAPER_COLOUR, label="the paper")
        first.plot([], [], "o", color=TUNED_COLOUR, label="ours, tuned (joint pass)")
        first.plot([], [], "o", color=LINEAGE_COLOUR, label="ours, MIR's rate (and passes)")
        figure.legend(loc="outside lower center", ncols=3, frameon=False)
        FigureCanvasAgg(figure)
        figure.savefig(path, dpi=150, metadata={"Software": None})


def _draw_panel(panel: Any, lines: Sequence[Gain]) -> None:
    panel.axvline(0, color="#9aa3ad", lw=1)
    panel.grid(axis="x", color="#e0e3e8")
    panel.set_axisbelow(True)
    panel.tick_params(axis="y", length=0)
    panel.set_ylim(-len(lines) + 0.4, 0.6)
    for k, line in enumerate(lines):
        if line.theirs is not None:
            panel.plot(100 * line.theirs, -k + 0.25, "D", color=PAPER_COLOUR, ms=5)
        for summary, colour, offset in (
            (line.tuned, TUNED_COLOUR, 0.0),
            (line.lineage, LINEAGE_COLOUR, -0.25),
        ):
            if summary is None:
                continue
            draw_mean(panel, summary, -k + offset, colour)
            end = 100 * (summary.mean if summary.n < 3 else summary.high or summary.mean)
            panel.annotate(
                f"n={summary.n}",
                (end, -k + offset),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
                fontsize=6,
                color=colour,
            )


def draw_mean(panel: Any, summary: Summary, height: float, colour: str) -> None:
    """Draw a mean as a dot and its 95 % interval as whiskers."""
    # One seed is no evidence: an empty dot. Two make intervals wider than the picture.
    fill = colour if summary.n > 2 else "white"
    panel.plot(100 * summary.mean, height, "o", color=colour, mfc=fill, ms=6, zorder=3)
    if summary.half_width is not None and summary.n > 2:
        spread = 100 * summary.half_width
        panel.errorbar(100 * summary.mean, height, xerr=spread, color=colour, lw=1.4, capsize=2.5)
