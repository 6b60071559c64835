"""What a store still lacks, and how long that would take, estimated from runs that are done."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from recollect.experiments.records.record import Record
from recollect.experiments.records.store import Store
from recollect.experiments.running.machine import code
from recollect.experiments.specs.cell import Cell


@dataclass(frozen=True)
class MissingRuns:
    """The seeds of one cell that are asked for and not there.

    Attributes:
        cell: What to run.
        seeds: With which seeds, ascending, as ranges: there may be 10^8 of them.
        num_there: How many of the seeds asked for are there.
        seconds: CPU time of one run, median over records of the cell, else of the same method on
            the same benchmark; None if there are none.
    """

    cell: Cell
    seeds: tuple[range, ...]
    num_there: int
    seconds: float | None

    @property
    def num_runs(self) -> int:
        """How many seeds are missing."""
        return sum(map(len, self.seeds))

    @property
    def total_seconds(self) -> float | None:
        """CPU time of all of them."""
        return None if self.seconds is None else self.seconds * self.num_runs


def missing_runs(
    cells: Sequence[Cell], seeds: range, store: Store, *, is_fresh: bool = False
) -> list[MissingRuns]:
    """Return what the store lacks of each cell, in the order of the cells.

    Args:
        cells: What is asked for.
        seeds: With which seeds, consecutive ones.
        store: Where the records are.
        is_fresh: Whether what other code than today's made is to be made again.
    """
    done = [record for record in store.records() if record.status == "done"]
    stale = {(run.spec_hash, run.seed) for run in done if run.versions.get("code") != code()}
    again = stale if is_fresh else set()
    found = []
    for cell in cells:
        there = sorted(
            seed
            for seed in store.done_seeds(cell)
            if seed in seeds and (cell.spec_hash, seed) not in again
        )
        if len(there) < len(seeds):
            gaps = _gaps(seeds, there)
            found.append(MissingRuns(cell, gaps, len(there), _seconds_of(cell, done)))
    return found


def _gaps(seeds: range, there: Sequence[int]) -> tuple[range, ...]:
    """Return what is left of consecutive seeds without some of them."""
    ends = [seeds.start - 1, *there, seeds.stop]
    gaps = (range(before + 1, after) for before, after in pairwise(ends))
    return tuple(gap for gap in gaps if gap)


def _seconds_of(cell: Cell, done: Sequence[Record]) -> float | None:
    alike = [run for run in done if (run.benchmark, run.method) == (cell.benchmark, cell.method)]
    same = [run for run in alike if run.spec_hash == cell.spec_hash]
    times = [run.cpu_seconds for run in same or alike]
    return median(times) if times else None
