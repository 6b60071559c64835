"""What remains of the gains: each beside its own baseline, on the seeds that both have."""

import dataclasses

from studies.batch_norm.remains import Setting, remains_table
from tests.unit.reports.runs import read_runs

from recollect.experiments.records.record import Record
from recollect.reports.cells import CellRuns, group_cells

MINUS = "\N{MINUS SIGN}"


def cell(method: str, known: dict[int, int]) -> CellRuns:
    """Make runs of two segments: `known` is how many of 100 are right of either, by seed."""
    first = next(record for record in read_runs() if record.method == "er")
    (found,) = group_cells(run(first, method, seed, right) for seed, right in known.items())
    return found


def run(record: Record, method: str, seed: int, right: int) -> Record:
    return dataclasses.replace(
        record, method=method, seed=seed, correct=((right, right), (right, right)), total=(100, 100)
    )


def test_gains_are_paired_and_told_below_what_the_paper_has() -> None:
    joint = {
        "er": cell("er", {0: 20, 1: 30, 2: 40}),
        "er-p": cell("er-p", {1: 34, 2: 38, 7: 99}),  # +4 and -2 on the seeds of both
        "er-mir": cell("er-mir", {0: 50}),
        "er-pc-mir": cell("er-pc-mir", {0: 45}),
    }
    rows = remains_table(
        Setting("cifar10-split", "joint pass", joint),
        Setting("cifar10-split", "separate passes", {}),
        Setting("mini-imagenet-split", "joint pass", {}),
    ).splitlines()[2:]
    # Half the interval of (4, -2) is t(0.975, 1) = 12.706 times their standard error, 3: 38.1.
    assert rows == [
        "| CIFAR10-S, *the paper* | 30.7 ± 2.0 | +5.4 | +7.8 | +9.3 | +7.9 |",
        f"| CIFAR10-S, joint pass | 30.0 ± 10.0 | +1.0 [{MINUS}37.1, +39.1], n=2 | not yet run "
        f"| not yet run | {MINUS}5.0 one seed |",
        "| CIFAR10-S, separate passes " + "| not yet run " * 5 + "|",
        "| MINI-S, *the paper* | 23.0 ± 1.2 | +2.5 | +2.2 | +2.8 |  |",
        "| MINI-S, joint pass " + "| not yet run " * 5 + "|",
    ]
