"""What PGD is made of: a weight on replay, clipping, the direction of w, one at a time."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from recollect.experiments.records.record import Record
from recollect.reports.cells import CellRuns, final_accuracy, flat_spec
from recollect.reports.names import method_title
from recollect.reports.statistics import paired_difference
from studies.gains.draw_gains import draw_mean
from studies.tables import NOT_RUN, View, against, difference_entries, numbers, pair_title

# Plain, with a weight, with clipping too, with PGD.
LADDERS: Final[Mapping[str, tuple[str, str, str, str]]] = {
    "uniform": ("er", "er-w", "er-clip", "er-p"),
    "MIR": ("er-mir", "er-w-mir", "er-clip-mir", "er-p-mir"),
}
_SETTINGS: Final = ("optimizer.lr", "options.replay_weight", "options.clip")
_PICTURE: Final = (
    ("MNIST-S", "mnist-split", "uniform"),
    ("MNIST-S, with MIR", "mnist-split", "MIR"),
    ("MNIST-P", "mnist-permuted", "uniform"),
)
_COLOURS: Final = ("#5d5d5d", "#476dc9", "#a3195b")


def parts_table(view: View, records: Sequence[Record], ladders: Sequence[str]) -> str:
    """Return one row per step: against the plain method, and against PGD."""
    found = view.cells(records)
    steps = [ladder for name, ladder in LADDERS.items() if name in ladders]
    to_plain = against(found, {method: plain for plain, *rest in steps for method in rest})
    to_pgd = against(found, {method: pgd for _, *parts, pgd in steps for method in parts})
    lines = [
        "| method | lr | weight | clip | n | accuracy | 95 % interval | forgetting | just learnt "
        "| minus the plain one | p (Holm) | minus PGD | p (Holm) |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for method in (method for ladder in steps for method in ladder):
        cell = found.get(method)
        if cell is None:
            entries = ["", "", "", "0", NOT_RUN, *[""] * 7]
        else:
            entries = [*_settings(cell), *numbers(cell)]
            entries += difference_entries(to_plain.get(method))
            entries += difference_entries(to_pgd.get(method))
        lines.append("| " + " | ".join([method_title(method), *entries]) + " |")
    return "\n".join(lines)


def _settings(cell: CellRuns) -> list[str]:
    spec = flat_spec(cell.records[0])
    return [spec.get(key, "") for key in _SETTINGS]


def draw_parts(records: Sequence[Record], path: Path) -> None:
    """Draw what each step adds to the plain method: dots are means, whiskers 95 % intervals."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    style: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with mpl.rc_context(style):
        figure = Figure(figsize=(9.2, 2.3))
        figure.set_layout_engine("constrained")
        # One scale: where nothing is gained it should look like nothing.
        panels: Any = figure.subplots(1, len(_PICTURE), sharex=True)
        for panel, (title, benchmark, ladder) in zip(panels, _PICTURE, strict=True):
            _draw_ladder(panel, View(benchmark).cells(records), LADDERS[ladder])
            panel.set_title(title, loc="left", fontweight="bold")
            panel.set_xlabel("accuracy, points")
        FigureCanvasAgg(figure)
        figure.savefig(path, dpi=150, metadata={"Software": None})


def _draw_ladder(panel: Any, found: Mapping[str, CellRuns], ladder: Sequence[str]) -> None:
    plain, *rest = ladder
    for k, (method, colour) in enumerate(zip(rest, _COLOURS, strict=True)):
        if method in found and plain in found:
            mine, theirs = (found[m].by_seed(final_accuracy) for m in (method, plain))
            difference = paired_difference(mine, theirs).summary
            if difference is not None:
                draw_mean(panel, difference, -k, colour)
    panel.axvline(0, color="#9aa3ad", lw=1)
    panel.grid(axis="x", color="#e0e3e8")
    panel.set_axisbelow(True)
    panel.tick_params(axis="y", length=0)
    panel.set_ylim(-len(rest) + 0.4, 0.6)
    panel.set_yticks([-k for k in range(len(rest))], [pair_title(m, plain) for m in rest])
