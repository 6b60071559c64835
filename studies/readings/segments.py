"""Which segments are known at the end, reading by reading."""

from collections.abc import Iterable, Sequence

from recollect.experiments.records.record import Record
from recollect.reports.cells import CellRuns, final_accuracy, final_forgetting, group_cells
from recollect.reports.numbers import percent
from recollect.reports.series import mean_matrix
from recollect.reports.statistics import paired_difference
from studies.readings.studies import ReadingStudy
from studies.tables import signed, spread


def segments_table(study: ReadingStudy, records: Sequence[Record], *bases: str) -> str:
    """Return one row for each reading of methods that was run, and for what it is compared with.

    Args:
        study: Whose readings.
        records: Their runs.
        bases: The methods, such as `"er-c"`.
    """
    found = {cell.method: cell for cell in group_cells(records)}
    of_bases = [r for r in study.readings if r.base in bases and r.name in found]
    shown = {name for reading in of_bases for name in (reading.name, reading.against)}
    lines = [
        "| reading | n | accuracy | minus its ER | forgetting | minus its ER "
        "| by segment, just learnt | by segment, at the end |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for reading in study.readings:
        if reading.name in shown and reading.name in found:
            baseline = found.get(reading.against) if reading in of_bases else None
            entries = [reading.label, *_entries(found[reading.name], baseline)]
            lines.append("| " + " | ".join(entries) + " |")
    return "\n".join(lines)


def _entries(cell: CellRuns, baseline: CellRuns | None) -> list[str]:
    entries = [str(len(cell.records))]
    for metric in (final_accuracy, final_forgetting):
        change = None
        if baseline is not None:
            change = paired_difference(cell.by_seed(metric), baseline.by_seed(metric)).summary
        entries += [spread(cell.summary(metric)), "" if change is None else signed(change)]
    matrix = mean_matrix(cell)
    just_learnt = [row[segment] for segment, row in enumerate(matrix)]
    return [*entries, _listed(just_learnt), _listed(matrix[-1])]


def _listed(shares: Iterable[float | None]) -> str:
    return " ".join(percent(share, digits=0) for share in shares if share is not None)
