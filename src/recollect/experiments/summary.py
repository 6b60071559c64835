"""Mean, spread and paired differences of records. A stand-in for `recollect.reports.statistics`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from recollect.experiments.record import Record
from recollect.metrics import AccuracyMatrix, average_accuracy, forgetting


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds.

    Attributes:
        n: Seeds.
        mean: Their mean.
        sd: Their standard deviation, NaN for one.
        half_width: Half the 95 % interval of the mean (Student's t), NaN for one.
    """

    n: int
    mean: float
    sd: float
    half_width: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Estimate":
        """Estimate the mean of what `values` are drawn from."""
        if len(values) < 2:
            return cls(len(values), fmean(values) if values else math.nan, math.nan, math.nan)
        from scipy.special import stdtrit  # scipy.stats would take a second to import

        sd = stdev(values)
        return cls(
            len(values),
            fmean(values),
            sd,
            float(stdtrit(len(values) - 1, 0.975)) * sd / math.sqrt(len(values)),
        )


@dataclass(frozen=True)
class SummaryRow:
    """One cell over its seeds.

    Attributes:
        benchmark: Name of the benchmark.
        protocol: Whose reading of it.
        method: Name of the method.
        capacity: Slots of the memory.
        accuracy: Average accuracy at the end.
        forgetting: Forgetting at the end, as cited (note P9).
        difference: Accuracy less the baseline's, over the seeds both have; None for the baseline.
        baseline: Which method that is.
    """

    benchmark: str
    protocol: str
    method: str
    capacity: int
    accuracy: Estimate
    forgetting: Estimate
    difference: Estimate | None
    baseline: str


def accuracy_and_forgetting(record: Record) -> tuple[float, float]:
    """Return average accuracy and forgetting, as cited, at the end of a run that is done."""
    matrix = AccuracyMatrix()
    for trained_on, row in enumerate(record.correct):
        for tested_on, (correct, total) in enumerate(zip(row, record.total, strict=True)):
            matrix.add(trained_on=trained_on, tested_on=tested_on, correct=correct, total=total)
    return average_accuracy(matrix), forgetting(matrix)


def summarise(records: Sequence[Record]) -> list[SummaryRow]:
    """Summarise runs that are done, cell by cell in the order they come.

    The baseline of a cell is the method `er`, or else the first method, of the same benchmark,
    protocol and, if it has one, memory size.
    """
    by_cell: dict[str, list[Record]] = {}
    for record in records:
        if record.status == "done":
            by_cell.setdefault(record.spec_hash, []).append(record)
    found = []
    for runs in by_cell.values():
        first = runs[0]
        baseline = _baseline(first, list(by_cell.values()))
        scores = {run.seed: accuracy_and_forgetting(run) for run in runs}
        found.append(
            SummaryRow(
                first.benchmark,
                first.protocol,
                first.method,
                first.capacity,
                Estimate.of([accuracy for accuracy, _ in scores.values()]),
                Estimate.of([lost for _, lost in scores.values()]),
                _difference(scores, baseline) if baseline is not runs else None,
                baseline[0].method,
            )
        )
    return found


def _baseline(cell: Record, runs_by_cell: Sequence[list[Record]]) -> list[Record]:
    comparable = [
        runs
        for runs in runs_by_cell
        if (runs[0].benchmark, runs[0].protocol) == (cell.benchmark, cell.protocol)
        and (runs[0].capacity == cell.capacity or not cell.capacity)
    ]
    return next((runs for runs in comparable if runs[0].method == "er"), comparable[0])


def _difference(
    scores: dict[int, tuple[float, float]], baseline: Sequence[Record]
) -> Estimate | None:
    other = {run.seed: accuracy_and_forgetting(run)[0] for run in baseline if run.seed in scores}
    return Estimate.of([scores[seed][0] - other[seed] for seed in sorted(other)]) if other else None
