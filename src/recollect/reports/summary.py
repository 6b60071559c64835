"""The table that a run ends with: one row per cell, each against the baseline."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from recollect.experiments.records.record import Record
from recollect.reports.cells import (
    area_under_curve,
    final_accuracy,
    final_forgetting,
    minimum_of_curve,
    share_seen,
    worst_case_of_curve,
)
from recollect.reports.statistics import (
    PairedDifference,
    Summary,
    corrected,
    paired_difference,
    summarise,
)


@dataclass(frozen=True)
class SummaryRow:
    """One cell over its seeds.

    Attributes:
        benchmark: Name of the benchmark.
        protocol: Whose version of the benchmark, such as `"paper"`.
        method: Name of the method.
        capacity: Slots of the memory.
        accuracy: Average accuracy at the end.
        forgetting: Forgetting at the end, as cited (note P9).
        difference: Accuracy less the baseline's, over the seeds both have, corrected over the
            rows of the table; None for the baseline.
        baseline: Which method that is.
        baseline_capacity: Slots of its memory, 0 without one.
        area: Area under the any-time accuracy; None for runs without a curve.
        minimum: Accuracy on segments that were over, at their worst look; likewise.
        worst_case: That, with the last segment as it is at the end; likewise.
        seen: Share of the batches that a budget left time for; None if the stream waited.
    """

    benchmark: str
    protocol: str
    method: str
    capacity: int
    accuracy: Summary
    forgetting: Summary
    difference: PairedDifference | None
    baseline: str
    baseline_capacity: int
    area: Summary | None = None
    minimum: Summary | None = None
    worst_case: Summary | None = None
    seen: float | None = None


def summarise_runs(records: Sequence[Record]) -> list[SummaryRow]:
    """Summarise runs that are done, cell by cell in the order they come.

    The baseline of a cell is the method `er`, or else the first method, of the same benchmark and
    protocol and, where both have one, memory size.
    """
    by_cell: dict[str, list[Record]] = {}
    for record in records:
        if record.status == "done":
            by_cell.setdefault(record.spec_hash, []).append(record)
    rows = [_row(runs, _baseline(runs[0], list(by_cell.values()))) for runs in by_cell.values()]
    compared = [row.difference for row in rows if row.difference is not None]
    adjusted = iter(corrected(compared))
    return [
        row if row.difference is None else replace(row, difference=next(adjusted)) for row in rows
    ]


def _row(runs: Sequence[Record], baseline: Sequence[Record]) -> SummaryRow:
    first = runs[0]
    accuracies = {run.seed: final_accuracy(run) for run in runs}
    difference = None
    if baseline is not runs:
        difference = paired_difference(
            accuracies, {run.seed: final_accuracy(run) for run in baseline}
        )
    return SummaryRow(
        first.benchmark,
        first.protocol,
        first.method,
        first.capacity,
        summarise(list(accuracies.values())),
        summarise([final_forgetting(run) for run in runs]),
        difference,
        baseline[0].method,
        baseline[0].capacity,
        area=_along(runs, area_under_curve),
        minimum=_along(runs, minimum_of_curve),
        worst_case=_along(runs, worst_case_of_curve),
        seen=share_seen(runs[0]),
    )


def _along(runs: Sequence[Record], number: Callable[[Record], float | None]) -> Summary | None:
    known = [value for run in runs if (value := number(run)) is not None]
    return summarise(known) if known else None


def _baseline(cell: Record, runs_by_cell: Sequence[list[Record]]) -> list[Record]:
    same = [
        runs
        for runs in runs_by_cell
        if (runs[0].benchmark, runs[0].protocol) == (cell.benchmark, cell.protocol)
    ]
    comparable = [
        runs
        for runs in same
        if runs[0].capacity == cell.capacity or not (runs[0].capacity and cell.capacity)
    ]
    # The first method of all sizes, so that each size has the same one if it can.
    for method in ("er", same[0][0].method):
        for runs in comparable:
            if runs[0].method == method:
                return runs
    return comparable[0]
