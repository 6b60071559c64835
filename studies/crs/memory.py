"""What each reading of CRS does to the memory: who leaves, at which age, and what is left."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from recollect.experiments.records.record import Record
from recollect.reports.cells import CellRuns, group_cells
from recollect.reports.colours import ramp
from recollect.reports.numbers import certainty, percent
from recollect.reports.series import memory_over_time
from recollect.reports.statistics import PairedDifference, corrected, paired_difference
from studies.readings.reading import Reading
from studies.readings.studies import MNIST, ReadingStudy
from studies.tables import NOT_RUN

_SHOWN: Final = ("er", "s1-insertion", "s2-clamp", "s1-equal")
_FIRST_CLASSES: Final = (0, 1)


def age_at_eviction(record: Record) -> float:
    """Return the mean age, in updates, of examples that left, over the whole run."""
    left = [
        (sum(point.evicted_counts), point.evicted_mean_age)
        for point in record.memory
        if point.evicted_mean_age is not None
    ]
    return math.fsum(count * age for count, age in left) / sum(count for count, _ in left)


def median_age(record: Record) -> float:
    """Return the median age of what is stored at the end, in updates."""
    return record.memory[-1].age_quantiles[2]


def share_of_the_first(record: Record) -> float:
    """Return the share of slots that the classes of the first segment hold at the end."""
    end = record.memory[-1]
    held = dict(zip(end.classes, end.counts, strict=True))
    return sum(held.get(label, 0) for label in _FIRST_CLASSES) / sum(end.counts)


def imbalance(record: Record) -> float:
    """Return the share of slots that would have to change class to make storage equal."""
    end = record.memory[-1]
    shares = [count / sum(end.counts) for count in end.counts] + [0.0] * (10 - len(end.counts))
    return sum(abs(share - 0.1) for share in shares) / 2


def crs_table(
    study: ReadingStudy, records: Sequence[Record], *, against: Sequence[str] | None = None
) -> str:
    """Return one row a reading of CRS, below the reservoir that its ages are tested against.

    Args:
        study: Whose readings.
        records: Their runs.
        against: Leave out readings that are compared with others than these.
    """
    found = {cell.method: cell for cell in group_cells(records)}
    shown = [
        reading
        for reading in study.readings
        if reading.base == "er-c"
        and {reading.name, reading.against} <= set(found)
        and (against is None or reading.against in against)
    ]
    if not shown:
        return NOT_RUN
    tests = corrected(
        [
            paired_difference(
                found[reading.name].by_seed(age_at_eviction),
                found[reading.against].by_seed(age_at_eviction),
            )
            for reading in shown
        ]
    )
    lines = [
        "| reading | n | age at eviction | minus reservoir | p (Holm) | median age at the end "
        "| slots of the first two classes | unequal |",
        "|---|---|---|---|---|---|---|---|",
    ]
    labels = {reading.name: reading.label for reading in study.readings}
    for baseline in dict.fromkeys(reading.against for reading in shown):
        title = labels[baseline].replace("ER", "reservoir (ER)", 1)
        lines.append(_row(title, found[baseline], "", ""))
        lines += [
            _tested_row(reading, found[reading.name], test)
            for reading, test in zip(shown, tests, strict=True)
            if reading.against == baseline
        ]
    return "\n".join(lines)


def _tested_row(reading: Reading, cell: CellRuns, test: PairedDifference) -> str:
    summary = test.summary
    difference = p_value = ""
    if summary is not None and summary.low is not None and summary.high is not None:
        mean, low, high = map(_whole, (summary.mean, summary.low, summary.high))
        difference = f"{mean} [{low}, {high}]"
        p_value = certainty(test)
    return _row(reading.label.removeprefix("ER-C, "), cell, difference, p_value)


def _whole(value: float) -> str:
    return f"{round(value):+d}".replace("-", "\u2212")


def _row(label: str, cell: CellRuns, difference: str, p_value: str) -> str:
    def mean(number: Callable[[Record], float]) -> float:
        return cell.summary(number).mean

    entries = [
        label,
        str(len(cell.records)),
        f"{mean(age_at_eviction):.0f}",
        difference,
        p_value,
        f"{mean(median_age):.0f}",
        f"{percent(mean(share_of_the_first))} %",
        f"{percent(mean(imbalance))} %",
    ]
    return "| " + " | ".join(entries) + " |"


def draw_crs(records: Sequence[Record], path: Path) -> None:
    """Draw slots by class over time, and the age of those that leave, for four storages."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    found = {cell.method: cell for cell in group_cells(records)}
    labels = {reading.name: reading.label for reading in MNIST.readings}
    with mpl.rc_context({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(9.6, 4.4), layout="constrained")
        axes: Any = figure.subplots(2, len(_SHOWN), sharex=True, sharey="row")
        for column, name in enumerate(_SHOWN):
            memory = memory_over_time(found[name])
            if memory is None:
                continue
            top, bottom = axes[0][column], axes[1][column]
            colours = [ramp(k / (len(memory.names) - 1)) for k in range(len(memory.names))]
            top.stackplot(memory.seen, list(zip(*memory.counts, strict=True)), colors=colours, lw=0)
            title = "reservoir (ER)" if name == "er" else labels[name].removeprefix("ER-C, ")
            top.set_title(title.split(", c ")[0], fontsize=8)
            bottom.plot(memory.seen, [ages[2] for ages in memory.ages], color="#8a8f98", lw=1.2)
            known = [
                (seen, age)
                for seen, age in zip(memory.seen, memory.evicted_age, strict=True)
                if age is not None
            ]
            bottom.plot(*zip(*known, strict=True), color="#c0392b", lw=1.6)
            bottom.set_xlabel("examples seen")
        axes[0][0].set_ylabel("slots by class (0 at the bottom)")
        axes[1][0].set_ylabel("age, updates")
        figure.supxlabel(
            "red: mean age of examples that leave; grey: median age of those stored; "
            f"means over {len(found['er'].records)} seeds",
            fontsize=8,
        )
        FigureCanvasAgg(figure)
        figure.savefig(path, dpi=150, metadata={"Software": None})
