"""What a store still lacks, and how long that would take: told by runs that are done."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from recollect.experiments.cell import Cell
from recollect.experiments.record import Record
from recollect.experiments.request import Request
from recollect.experiments.store import Store


@dataclass(frozen=True)
class MissingRuns:
    """The seeds of one cell that are asked for and not there.

    Attributes:
        cell: What to run.
        seeds: With which seeds, ascending.
        num_there: How many of the seeds asked for are there.
        seconds: CPU time of one run, median over records of the cell, else of the same method on
            the same benchmark; None if there are none.
    """

    cell: Cell
    seeds: tuple[int, ...]
    num_there: int
    seconds: float | None

    @property
    def total_seconds(self) -> float | None:
        """CPU time of all of them."""
        return None if self.seconds is None else self.seconds * len(self.seeds)


def missing_runs(requests: Sequence[Request], store: Store) -> list[MissingRuns]:
    """Group the runs that the store lacks by cell, in the order of the requests."""
    asked: dict[str, list[Request]] = {}
    for request in requests:
        asked.setdefault(request.cell.spec_hash, []).append(request)
    done = [record for record in store.records() if record.status == "done"]
    found = []
    for of_cell in asked.values():
        cell = of_cell[0].cell
        seeds = tuple(sorted(r.seed for r in of_cell if not store.is_done(r)))
        if seeds:
            num_there = len(of_cell) - len(seeds)
            found.append(MissingRuns(cell, seeds, num_there, _seconds_of(cell, done)))
    return found


def _seconds_of(cell: Cell, done: Sequence[Record]) -> float | None:
    alike = [run for run in done if (run.benchmark, run.method) == (cell.benchmark, cell.method)]
    same = [run for run in alike if run.spec_hash == cell.spec_hash]
    times = [run.cpu_seconds for run in same or alike]
    return median(times) if times else None
