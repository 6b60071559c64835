"""A picture of what BatchNorm does to replay: passes and norms, seed by seed."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from recollect.experiments.records.record import Record
from recollect.reports.cells import (
    CellRuns,
    accuracy_just_learnt,
    final_accuracy,
    final_forgetting,
    group_cells,
)
from recollect.reports.names import method_title
from studies.gains.draw_gains import draw_mean
from studies.tables import PAPER_METHODS, View

_COLOURS: Final[Mapping[str, str]] = {
    "joint pass": "#476dc9",
    "separate passes": "#d79d0f",
    "GroupNorm, either": "#1da590",
}
# The end alone does not say whether little was learnt or much was forgotten.
_PANELS: Final[Mapping[str, Callable[[Record], float]]] = {
    "accuracy at the end, %": final_accuracy,
    "just learnt, %": accuracy_just_learnt,
    "forgetting, %": final_forgetting,
}
_BENCHMARK: Final = "cifar10-split"


@dataclass(frozen=True)
class PassesLine:
    """Runs that stand in one line of the picture, by what they passed."""

    label: str
    runs: Mapping[str, CellRuns | None]


@dataclass(frozen=True)
class PassesBlock:
    """Lines of one benchmark and one length of its stream."""

    heading: str
    lines: Sequence[PassesLine]


def reading_lines(
    pairs: Sequence[tuple[str, str, str]],
    batch_norm: Sequence[Record],
    group_norm: Sequence[Record] = (),
) -> list[PassesLine]:
    """Return those of `pairs` of readings that have runs with both passes."""
    batch = {cell.method: cell for cell in group_cells(batch_norm)}
    group = {cell.method: cell for cell in group_cells(group_norm)}
    return [
        line
        for label, joint, separate in pairs
        if (line := _line(label, batch.get(joint), batch.get(separate), group.get(joint)))
    ]


def whole_lines(records: Sequence[Record]) -> list[PassesLine]:
    """Return the methods of the tables that have runs with both passes."""
    joint = View(_BENCHMARK, "joint").cells(records)
    separate = View(_BENCHMARK, "separate").cells(records)
    return [
        line
        for method in PAPER_METHODS
        if method != "van"  # nothing is replayed
        if (line := _line(method_title(method), joint.get(method), separate.get(method), None))
    ]


def _line(
    label: str, joint: CellRuns | None, separate: CellRuns | None, group: CellRuns | None
) -> PassesLine | None:
    """Return both on the seeds that both have, as the table beside the picture does."""
    if joint is None or separate is None or not (common := {*joint.seeds} & {*separate.seeds}):
        return None
    both = (_only(joint, common), _only(separate, common), group)
    return PassesLine(label, dict(zip(_COLOURS, both, strict=True)))


def _only(cell: CellRuns, seeds: Set[int]) -> CellRuns:
    return replace(cell, records=tuple(r for r in cell.records if r.seed in seeds))


def draw_passes(blocks: Sequence[PassesBlock], path: Path) -> None:
    """Draw every line in every panel: seeds as dots, means with 95 % intervals."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = [block for block in blocks if block.lines]
    style: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with mpl.rc_context(style):
        figure = Figure(figsize=(10.4, 0.9 + 0.34 * sum(len(block.lines) + 1 for block in shown)))
        figure.set_layout_engine("constrained")
        panels: Any = figure.subplots(1, len(_PANELS), sharey=True)
        for panel, (title, metric) in zip(panels, _PANELS.items(), strict=True):
            ticks, place = [], 0.0
            for block in shown:
                ticks.append((place, block.heading, True))
                for line in block.lines:
                    place -= 1
                    ticks.append((place, line.label, False))
                    _draw_line(panel, place, line, metric)
                place -= 1.2
            panel.set_title(title, loc="left", fontweight="bold")
            panel.grid(axis="x", color="#e0e3e8")
            panel.set_axisbelow(True)
            panel.tick_params(axis="y", length=0)
            panel.set_ylim(place + 0.6, 0.6)
        panels[0].set_yticks([tick[0] for tick in ticks], [tick[1] for tick in ticks])
        for text, (_, _, is_heading) in zip(panels[0].get_yticklabels(), ticks, strict=True):
            text.set_fontstyle("italic" if is_heading else "normal")
        for name, colour in _COLOURS.items():
            panels[0].plot([], [], "o", color=colour, label=name)
        figure.legend(loc="outside lower center", ncols=3, frameon=False)
        FigureCanvasAgg(figure)
        figure.savefig(path, dpi=150, metadata={"Software": None})


def _draw_line(
    panel: Any, place: float, line: PassesLine, metric: Callable[[Record], float]
) -> None:
    for offset, (name, cell) in zip((0.22, 0.0, -0.22), line.runs.items(), strict=True):
        if cell is None:
            continue
        summary, colour = cell.summary(metric), _COLOURS[name]
        seeds = [100 * value for value in cell.by_seed(metric).values()]
        panel.plot(seeds, [place + offset] * len(seeds), ".", color=colour, ms=4, alpha=0.6)
        draw_mean(panel, summary, place + offset, colour)
