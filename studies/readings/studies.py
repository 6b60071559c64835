"""What each reading of the paper does on a benchmark, and to the memory: records and figures.

    python -m studies.readings mnist-split [--seeds 20] [--workers 1]
    python -m studies.readings cifar10-split --seeds 4

Validation accuracy (test data is not read), seeds from 3000 on, each reading paired with another.
Records are kept in `results/readings/STUDY.parquet`; `python -m studies.document` makes tables
from them. Stop at any time; the same command continues.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from recollect.experiments.records.record import Record
from recollect.experiments.specs.cell import Cell, cells
from recollect.experiments.specs.request import Request
from recollect.experiments.specs.spec import check_spec
from recollect.experiments.tuning.study import refuse_test_data
from recollect.reports.cells import CellRuns, final_accuracy, final_forgetting, group_cells
from recollect.reports.numbers import percent, points
from recollect.reports.statistics import Summary, paired_difference
from studies.kept import read_kept
from studies.making import make
from studies.readings import cifar10_split as cifar10
from studies.readings import mini_imagenet_split as mini
from studies.readings import mnist_margins as margins
from studies.readings import mnist_split as mnist
from studies.readings.reading import Reading

ROOT: Final = Path(__file__).parents[2]
FIRST_SEED: Final = 3000


@dataclass(frozen=True)
class ReadingStudy:
    """Readings of the paper on one benchmark.

    Attributes:
        name: What commands call it.
        title: What tables call it.
        spec: What its readings share, as a spec says it.
        readings: The readings.
        first_seed: Its seeds count from here.
    """

    name: str
    title: str
    spec: Mapping[str, Any]
    readings: Sequence[Reading]
    first_seed: int = FIRST_SEED

    @property
    def path(self) -> Path:
        """Where the records are kept."""
        return ROOT / "results" / "readings" / f"{self.name}.parquet"

    def cells(self) -> list[Cell]:
        """Resolve every reading.

        Raises:
            ConfigError: One would look at test data.
        """
        methods = {
            reading.name: {"base": reading.base, **reading.options} for reading in self.readings
        }
        spec = check_spec({**self.spec, "methods": methods}, source=f"readings of {self.name}")
        found = cells(spec, methods=list(methods))
        refuse_test_data(found)
        return found

    def records(self) -> list[Record]:
        """Return the records of all readings."""
        return list(read_kept(self.path).values())


MNIST: Final = ReadingStudy("mnist-split", "MNIST-S", mnist.SPEC, mnist.READINGS)
MNIST_MARGINS: Final = ReadingStudy(
    "mnist-split-margins",
    "MNIST-S, either sign of c",
    margins.SPEC,
    margins.READINGS,
    margins.FIRST_SEED,
)
CIFAR: Final = ReadingStudy("cifar10-split", "CIFAR10-S", cifar10.SPEC, cifar10.READINGS)
CIFAR_GROUP_NORM: Final = ReadingStudy(
    "cifar10-split-group-norm",
    "CIFAR10-S with GroupNorm",
    cifar10.GROUP_NORM_SPEC,
    cifar10.GROUP_NORM_READINGS,
)
MINI_SHORT: Final = ReadingStudy(
    "mini-imagenet-split", "MINI-S, short segments", mini.SHORT_SPEC, mini.SHORT_READINGS
)
MINI_FIVE: Final = ReadingStudy(
    "mini-imagenet-split-five", "MINI-S, five segments", mini.FIVE_SPEC, mini.READINGS
)
STUDIES: Final = {
    study.name: study
    for study in (MNIST, MNIST_MARGINS, CIFAR, CIFAR_GROUP_NORM, MINI_SHORT, MINI_FIVE)
}


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("study", choices=list(STUDIES))
    options.add_argument("--seeds", type=int, default=20)
    options.add_argument("--only", nargs="+", metavar="READING", help="these, not all of them")
    options.add_argument("--workers", type=int, default=1)
    asked = options.parse_args()
    study = STUDIES[asked.study]
    names = [reading.name for reading in study.readings]
    only = asked.only or names
    if unknown := sorted(set(only) - set(names)):
        sys.exit(f"no {', '.join(unknown)} in {study.name}; it has {', '.join(names)}.")
    kept = read_kept(study.path)
    wanted = [
        Request(cell, seed, f"python -m studies.readings {study.name}")
        for seed in range(study.first_seed, study.first_seed + asked.seeds)
        for cell in study.cells()
        if cell.method in only and (cell.spec_hash, seed) not in kept
    ]
    make(wanted, kept, study.path, workers=asked.workers, is_slim=False)
    print(readings_table(study, study.records()))


def readings_table(study: ReadingStudy, records: Sequence[Record]) -> str:
    """Return one row a reading: accuracy, forgetting, paired difference, slots by class."""
    found = {cell.method: cell for cell in group_cells(records)}
    failed = {
        reading.name: sum(r.method == reading.name and r.status != "done" for r in records)
        for reading in study.readings
    }
    labels = {reading.name: reading.label for reading in study.readings}
    lines = [
        "| note | reading | n | accuracy | forgetting | minus ER, paired | slots by class |",
        "|---|---|---|---|---|---|---|",
    ]
    for reading in study.readings:
        note, label = reading.note, reading.label.replace("|", r"\|")
        cell, num_failed = found.get(reading.name), failed[reading.name]
        if num_failed:
            total = num_failed + (0 if cell is None else len(cell.records))
            lines.append(f"| {note} | {label} | {total} | {num_failed} diverge | | | |")
        elif cell is None:
            lines.append(f"| {note} | {label} | 0 | not yet run | | | |")
        else:
            to = "" if reading.against == "er" else f" to {labels[reading.against]}"
            lines.append(f"| {note} | {label} | {_entries(cell, found.get(reading.against), to)} |")
    return "\n".join(lines)


def _entries(cell: CellRuns, baseline: CellRuns | None, to: str) -> str:
    accuracy, lost = cell.summary(final_accuracy), cell.summary(final_forgetting)
    difference = ""
    if baseline is not None and cell is not baseline:
        gain = paired_difference(
            cell.by_seed(final_accuracy), baseline.by_seed(final_accuracy)
        ).summary
        difference = "" if gain is None else interval(gain) + to
    slots = " ".join(f"{count:.0f}" for count in final_slots(cell))
    spread = "" if accuracy.sd is None else f" ± {percent(accuracy.sd)}"
    return (
        f"{accuracy.n} | {percent(accuracy.mean)}{spread} | {percent(lost.mean)} "
        f"| {difference} | {slots}"
    )


def interval(summary: Summary) -> str:
    """Return a difference and its 95 % interval in points."""
    if summary.low is None or summary.high is None:
        return f"{points(summary.mean)} (n=1)"
    return f"{points(summary.mean)} [{points(summary.low)}, {points(summary.high)}]"


def final_slots(cell: CellRuns) -> list[float]:
    """Return the mean number of slots of each class at the end; none where nothing is stored."""
    ends = [
        dict(zip(record.memory[-1].classes, record.memory[-1].counts, strict=True))
        for record in cell.records
        if record.memory
    ]
    num_classes = max((label + 1 for end in ends for label in end), default=0)
    return [sum(end.get(label, 0) for end in ends) / len(ends) for label in range(num_classes)]
