"""What remains of PGD's and CRS's gains under BatchNorm, by how examples pass the network."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from recollect.reports.cells import CellRuns, final_accuracy
from recollect.reports.names import benchmark_title
from recollect.reports.numbers import points
from studies.machines.machines import minus, with_count
from studies.tables import NOT_RUN, REPORTED, pair_title, spread

GAINS: Final = (
    ("er-p", "er"),
    ("er-c", "er"),
    ("er-pc", "er"),
    ("er-pc-mir", "er-mir"),
)


@dataclass(frozen=True)
class Setting:
    """Runs of one benchmark that pass the network one way.

    Attributes:
        benchmark: Name of the benchmark.
        title: What the table calls it.
        cells: Its cells by method.
    """

    benchmark: str
    title: str
    cells: Mapping[str, CellRuns]


def remains_table(*settings: Setting) -> str:
    """Return one row a setting: ER's accuracy, and what each part adds on the seeds of both.

    The paper's row stands above the first setting of each benchmark.
    """
    gains = [pair_title(one, other) for one, other in GAINS]
    lines = ["| | ER | " + " | ".join(gains) + " |", "|---" * (len(gains) + 2) + "|"]
    told = set()
    for setting in settings:
        if setting.benchmark not in told:
            told.add(setting.benchmark)
            lines.append(_line(_reported(setting.benchmark)))
        er = setting.cells.get("er")
        accuracy = NOT_RUN if er is None else spread(er.summary(final_accuracy))
        found = [with_count(minus(setting.cells, one, other)) for one, other in GAINS]
        title = f"{benchmark_title(setting.benchmark)}, {setting.title}"
        lines.append(_line([title, accuracy, *found]))
    return "\n".join(lines)


def _reported(benchmark: str) -> list[str]:
    """Say what the paper has; it draws some methods without printing their numbers."""
    found = {
        method: reported
        for (metric, where, method), reported in REPORTED.items()
        if metric == "accuracy" and where == benchmark
    }
    gains = [
        points((found[one].mean - found[other].mean) / 100) if {one, other} <= found.keys() else ""
        for one, other in GAINS
    ]
    er = found["er"]
    return [
        f"{benchmark_title(benchmark)}, *the paper*",
        f"{er.mean:.1f} ± {er.spread:.1f}",
        *gains,
    ]


def _line(entries: list[str]) -> str:
    return "| " + " | ".join(entries) + " |"
