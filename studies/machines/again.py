"""Run committed records again and compare: everything but the times must be the same.

Drawn are records made on this kind of machine, if there are any.

python -m studies.machines.again mnist-split [--runs 2] [--seed 0]
"""

import argparse
import random
import sys
from collections.abc import Sequence
from dataclasses import replace

import torch

from recollect.experiments.records.compare_records import without_times
from recollect.experiments.records.record import Record
from recollect.experiments.running.execute import execute
from recollect.experiments.running.machine import machine, versions
from recollect.experiments.specs.cell import Cell
from recollect.experiments.specs.request import Request
from recollect.reports.reading import read_store
from studies.pack import present_stores


def drawn(records: Sequence[Record], count: int, rng: random.Random) -> list[Record]:
    """Draw records that are done."""
    done = [record for record in records if record.status == "done"]
    return rng.sample(done, min(count, len(done)))


def made_again(record: Record) -> Record:
    """Make the run of a record from its own spec."""
    torch.set_num_threads(record.threads)  # another number adds up in another order
    return execute(Request(Cell.from_json(record.spec), record.seed, record.command))


def counts(record: Record) -> Record:
    """Return what must be the same: all but times, and where and by which state it was made."""
    return replace(without_times(record), commit="", versions={}, machine={})


def is_same_kind_of_machine(record: Record) -> bool:
    """Whether bits can be expected to agree: rounding differs between processors and versions.

    A record from before `kernels` was kept does not say enough: `AMD EPYC` is several processors.
    """
    here, there = versions(), record.versions
    same = all(here[name] == there.get(name) for name in ("torch", "numpy"))
    return same and all(record.machine.get(key) == machine()[key] for key in ("cpu", "kernels"))


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("benchmark")
    options.add_argument("--runs", type=int, default=2)
    options.add_argument("--seed", type=int, help="of the draw; another draw each time without")
    asked = options.parse_args()
    everywhere = [record for store in present_stores() for record in read_store(store)]
    of_it = [record for record in everywhere if record.benchmark == asked.benchmark]
    # Those made here tell more; the others show how far bits agree between processors.
    records = [record for record in of_it if is_same_kind_of_machine(record)] or of_it
    differ = 0
    for record in drawn(records, asked.runs, random.Random(asked.seed)):
        same = counts(made_again(record)) == counts(record)
        differ += not same
        told = "the same" if same else "DIFFERS"
        if not same and not is_same_kind_of_machine(record):
            told += " (made on another kind of machine, or by other versions)"
        print(f"{record.method} {record.capacity} slots, seed {record.seed}: {told}")
    if differ:
        sys.exit(f"{differ} of {asked.runs} runs differ from their records")


if __name__ == "__main__":
    main()
