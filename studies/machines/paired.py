"""Whether a new engine learns as well: fresh runs beside committed ones, seed by seed.

    recollect run mnist-split -m er-p -m er-pc-mir --seeds 30 --out runs/again
    python -m studies.machines.paired runs/again

Where only rounding moved, runs differ, and their mean does not. Compared are runs with the same
spec and seed: accuracy at the end, fresh minus committed, with a 95 % interval.
"""

import argparse
import sys
from collections import defaultdict
from pathlib import Path

from recollect.reports.cells import final_accuracy
from recollect.reports.reading import read_store
from recollect.reports.statistics import paired_difference
from studies.pack import present_stores

Runs = dict[tuple[str, str, int, str], dict[int, float]]  # by cell, then by seed


def accuracies(store: Path) -> Runs:
    """Return the final accuracies of a store's runs."""
    found: Runs = defaultdict(dict)
    for record in read_store(store):
        if record.status == "done":
            cell = record.benchmark, record.method, record.capacity, record.spec_hash
            found[cell][record.seed] = final_accuracy(record)
    return found


def lines(fresh: Runs, committed: Runs) -> list[str]:
    """Say of each cell that both have how far its means are apart."""
    told = []
    for cell in sorted(set(fresh) & set(committed)):
        summary = paired_difference(fresh[cell], committed[cell]).summary
        if summary is None or summary.low is None or summary.high is None:
            continue
        mean, low, high = (100 * x for x in (summary.mean, summary.low, summary.high))
        benchmark, method, capacity, _ = cell
        told.append(
            f"{benchmark} {method}, {capacity} slots: {mean:+.2f} points "
            f"[{low:+.2f}, {high:+.2f}], n = {summary.n}"
        )
    return told


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("store", type=Path, help="the fresh runs")
    fresh: Runs = accuracies(options.parse_args().store)
    committed: Runs = defaultdict(dict)
    for store in present_stores():
        for cell, by_seed in accuracies(store).items():
            committed[cell] = {**by_seed, **committed[cell]}  # the tables' own runs count
    told = lines(fresh, committed)
    if not told:
        sys.exit("no cell has two seeds or more in common with the committed runs")
    print("\n".join(told))


if __name__ == "__main__":
    main()
