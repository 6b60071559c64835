"""A picture of what BatchNorm does to replay: passes and norms, seed by seed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from recollect.experiments.record import Record
from recollect.reports.cells import CellRuns, final_accuracy, final_forgetting, group_cells
from studies.batch_norm import CIFAR_PAIRS
from studies.draw_gains import draw_mean
from studies.tables import View

_COLOURS: Final[Mapping[str, str]] = {
    "joint pass": "#476dc9",
    "separate passes": "#d79d0f",
    "GroupNorm, either": "#1da590",
}
_BENCHMARK: Final = "cifar10-split"


@dataclass(frozen=True)
class _Line:
    """Runs that stand in one line of the picture, by what they passed."""

    label: str
    runs: Mapping[str, CellRuns | None]


def short_lines(batch_norm: Sequence[Record], group_norm: Sequence[Record]) -> list[_Line]:
    """Return ER at two rates, and ER-P, from the readings of CIFAR10-S."""
    batch = {cell.method: cell for cell in group_cells(batch_norm)}
    group = {cell.method: cell for cell in group_cells(group_norm)}
    return [
        _line(label, batch.get(joint), batch.get(separate), group.get(joint))
        for label, joint, separate in CIFAR_PAIRS
    ]


def whole_lines(records: Sequence[Record]) -> list[_Line]:
    """Return the methods of the tables that have runs with both passes."""
    joint = View(_BENCHMARK, "joint").cells(records)
    separate = View(_BENCHMARK, "separate").cells(records)
    return [
        _line(label, joint.get(method), separate[method], None)
        for method, label in (
            ("er", "ER"),
            ("er-p", "ER-P"),
            ("er-c", "ER-C"),
            ("er-pc", "ER-PC"),
        )
        if method in separate
    ]


def _line(
    label: str, joint: CellRuns | None, separate: CellRuns | None, group: CellRuns | None
) -> _Line:
    return _Line(label, dict(zip(_COLOURS, (joint, separate, group), strict=True)))


def draw_passes(short: Sequence[_Line], whole: Sequence[_Line], path: Path) -> None:
    """Draw accuracy and forgetting of every line: seeds as dots, means with 95 % intervals."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    blocks = (("3000 a segment, validation", short), ("whole streams, test", whole))
    style: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with mpl.rc_context(style):
        figure = Figure(figsize=(9.2, 0.9 + 0.34 * (len(short) + len(whole) + 2)))
        figure.set_layout_engine("constrained")
        panels: Any = figure.subplots(1, 2, sharey=True)
        for panel, metric, title in zip(
            panels,
            (final_accuracy, final_forgetting),
            ("average accuracy, %", "forgetting, %"),
            strict=True,
        ):
            ticks, place = [], 0.0
            for heading, lines in blocks:
                ticks.append((place, heading, True))
                for line in lines:
                    place -= 1
                    ticks.append((place, line.label, False))
                    _draw_line(panel, place, line, metric)
                place -= 1.2
            panel.set_title(title, loc="left", fontweight="bold")
            panel.grid(axis="x", color="#e0e3e8")
            panel.set_axisbelow(True)
            panel.set_ylim(place + 0.6, 0.6)
        panels[0].set_yticks([tick[0] for tick in ticks], [tick[1] for tick in ticks])
        for text, (_, _, is_heading) in zip(panels[0].get_yticklabels(), ticks, strict=True):
            text.set_fontstyle("italic" if is_heading else "normal")
        panels[0].tick_params(axis="y", length=0)
        for name, colour in _COLOURS.items():
            panels[0].plot([], [], "o", color=colour, label=name)
        figure.legend(loc="outside lower center", ncols=3, frameon=False)
        FigureCanvasAgg(figure)
        figure.savefig(path, dpi=150, metadata={"Software": None})


def _draw_line(panel: Any, place: float, line: _Line, metric: Callable[[Record], float]) -> None:
    for offset, (name, cell) in zip((0.22, 0.0, -0.22), line.runs.items(), strict=True):
        if cell is None:
            continue
        summary, colour = cell.summary(metric), _COLOURS[name]
        seeds = [100 * value for value in cell.by_seed(metric).values()]
        panel.plot(seeds, [place + offset] * len(seeds), ".", color=colour, ms=4, alpha=0.6)
        draw_mean(panel, summary, place + offset, colour)
