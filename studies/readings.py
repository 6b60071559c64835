"""What each reading of the paper does on MNIST-S, and to the memory: records and figures.

    python -m studies.readings [--seeds 20] [--workers 1]

Validation accuracy (test data is not read), seeds from 3000, paired with ER. Records are kept in
`results/readings/mnist-split.parquet`; `python -m studies.document` makes the table of
docs/paper-notes.md and the CRS section of docs/reproduction.md from them.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from recollect.experiments.cell import Cell, cells
from recollect.experiments.record import Record
from recollect.experiments.request import Request
from recollect.experiments.spec import check_spec
from recollect.reports.cells import CellRuns, final_accuracy, final_forgetting, group_cells
from recollect.reports.numbers import percent, points
from recollect.reports.statistics import Summary, paired_difference
from studies.kept import read_kept
from studies.space import refuse_test_data
from studies.tune import make

ROOT: Final = Path(__file__).parents[1]
KEPT: Final = ROOT / "results" / "readings" / "mnist-split.parquet"
FIRST_SEED: Final = 3000
SPEC: Final[Mapping[str, Any]] = {
    "benchmark": "mnist-split",
    "memory": [500],
    "stream": {"batch_size": 10, "validation_per_segment": 1000},
    "model": {"name": "mlp", "hidden": [100, 100]},
    "optimizer": {"name": "sgd", "lr": 0.05},
    "learner": {"replay": 10, "iterations": 1, "passes": "joint"},
    "evaluation": {"on": "validation", "points": 10},
}


@dataclass(frozen=True)
class Reading:
    """One reading.

    Attributes:
        name: What records call it.
        note: Which paper note it belongs to.
        label: What people call it.
        base: Which method it is.
        options: Settings that differ from the method's defaults.
        against: The reading it is compared with.
    """

    name: str
    note: str
    label: str
    base: str
    options: dict[str, Any] = field(default_factory=dict)
    against: str = "er"


def _crs(pick: str, **options: Any) -> dict[str, Any]:
    return {"pick": pick, "margin_weight": 0.1, "margins": "insertion", **options}


_S1, _S2 = "highest", "proportional"
_ALONE: Final[dict[str, Any]] = {"margins": "never", "margin_weight": 0.0}
_PGD: Final[dict[str, Any]] = {"step_size": 10.0, "norm_floor": 1.0, "target_floor": 3.0}

READINGS: Final = (
    Reading("er", "", "ER", "er"),
    Reading("p-floor-3", "P2", "ER-P, floor on |w| 3", "er-p", _PGD),
    Reading("p-floor-1", "P2", "ER-P, floor on |w| 1", "er-p", {**_PGD, "target_floor": 1.0}),
    Reading("p-floor-01", "P2", "ER-P, floor on |w| 0.1", "er-p", {**_PGD, "target_floor": 0.1}),
    Reading(
        "p-no-floor",
        "P2",
        "ER-P, no floor to speak of (1e-6)",
        "er-p",
        {**_PGD, "target_floor": 1e-6},
    ),
    Reading("p-10-steps", "P2", "ER-P, 10 proximal steps", "er-p", {**_PGD, "steps": 10}),
    Reading("p-2-groups", "P2", "ER-P, 2 groups of 5", "er-p", {**_PGD, "groups": 2}),
    Reading("s1-ex", "P6", "ER-C, s1, EX alone", "er-c", _crs(_S1, **_ALONE)),
    Reading(
        "s1-ex-age-100",
        "P6",
        "ER-C, s1, EX alone, age + 100",
        "er-c",
        _crs(_S1, **_ALONE, age_offset=100.0),
    ),
    Reading("s2-ex", "P6", "ER-C, s2, EX alone", "er-c", _crs(_S2, **_ALONE)),
    Reading("s1-insertion", "P5", "ER-C, s1, MI at insertion, c 0.1", "er-c", _crs(_S1)),
    Reading(
        "s1-replay", "P5", "ER-C, s1, MI at replay, c 0.1", "er-c", _crs(_S1, margins="replay")
    ),
    Reading("s1-both", "P5", "ER-C, s1, MI at both, c 0.1", "er-c", _crs(_S1, margins="both")),
    Reading("s1-all", "P5", "ER-C, s1, MI of all, c 0.1", "er-c", _crs(_S1, margins="all")),
    Reading(
        "s1-insertion-c-1",
        "P5",
        "ER-C, s1, MI at insertion, c 1",
        "er-c",
        _crs(_S1, margin_weight=1.0),
    ),
    Reading("s2-clamp", "P4", "ER-C, s2 clamped, MI at insertion, c 0.1", "er-c", _crs(_S2)),
    Reading(
        "s2-shift",
        "P4",
        "ER-C, s2 shifted, MI at insertion, c 0.1",
        "er-c",
        _crs(_S2, negative="shift"),
    ),
    Reading(
        "s1-equal",
        "P7",
        "ER-C, s1 within class, MI at insertion",
        "er-c",
        _crs(_S1, within_class=True),
    ),
    Reading(
        "s2-equal",
        "P7",
        "ER-C, s2 within class, MI at insertion",
        "er-c",
        _crs(_S2, within_class=True),
    ),
    # At the learning rate that suits ER: is there still something to gain?
    Reading("er-fast", "P11", "ER, learning rate 0.1", "er", {"lr": 0.1}),
    Reading("p-fast", "P11", "ER-P, learning rate 0.1", "er-p", {**_PGD, "lr": 0.1}, "er-fast"),
    Reading(
        "s1-fast",
        "P11",
        "ER-C, s1, MI at insertion, learning rate 0.1",
        "er-c",
        _crs(_S1, lr=0.1),
        "er-fast",
    ),
    Reading(
        "s2-fast",
        "P11",
        "ER-C, s2 shifted, MI at insertion, learning rate 0.1",
        "er-c",
        _crs(_S2, negative="shift", lr=0.1),
        "er-fast",
    ),
    Reading(
        "s1-equal-fast",
        "P11",
        "ER-C, s1 within class, learning rate 0.1",
        "er-c",
        _crs(_S1, within_class=True, lr=0.1),
        "er-fast",
    ),
    Reading(
        "separate", "P12", "ER, separate passes (no BatchNorm here)", "er", {"passes": "separate"}
    ),
)


def reading_cells() -> list[Cell]:
    """Resolve every reading.

    Raises:
        ConfigError: One would look at test data.
    """
    methods = {reading.name: {"base": reading.base, **reading.options} for reading in READINGS}
    spec = check_spec({**SPEC, "methods": methods}, source="studies/readings.py")
    found = cells(spec, methods=list(methods))
    refuse_test_data(found)
    return found


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--seeds", type=int, default=20)
    options.add_argument("--workers", type=int, default=1)
    asked = options.parse_args()
    kept = read_kept(KEPT)
    seeds = range(FIRST_SEED, FIRST_SEED + asked.seeds)
    wanted = [
        Request(cell, seed, "python -m studies.readings")
        for seed in seeds
        for cell in reading_cells()
        if (cell.spec_hash, seed) not in kept
    ]
    make(wanted, kept, KEPT, workers=asked.workers, is_slim=False)
    print(readings_table(read_readings()))


def read_readings() -> list[Record]:
    """Return the records of all readings."""
    return list(read_kept(KEPT).values())


def readings_table(records: Sequence[Record]) -> str:
    """Return one row a reading: accuracy, forgetting, paired difference, slots by class."""
    found = {cell.method: cell for cell in group_cells(records)}
    failed = {
        reading.name: sum(r.method == reading.name and r.status != "done" for r in records)
        for reading in READINGS
    }
    lines = [
        "| note | reading | n | accuracy | forgetting | minus ER, paired | slots by class |",
        "|---|---|---|---|---|---|---|",
    ]
    for reading in READINGS:
        note, label = reading.note, reading.label.replace("|", r"\|")
        cell, num_failed = found.get(reading.name), failed[reading.name]
        if num_failed:
            total = num_failed + (0 if cell is None else len(cell.records))
            lines.append(f"| {note} | {label} | {total} | {num_failed} diverge | | | |")
        elif cell is None:
            lines.append(f"| {note} | {label} | 0 | not yet run | | | |")
        else:
            lines.append(f"| {note} | {label} | {_entries(cell, found.get(reading.against))} |")
    return "\n".join(lines)


def _entries(cell: CellRuns, baseline: CellRuns | None) -> str:
    accuracy, lost = cell.summary(final_accuracy), cell.summary(final_forgetting)
    difference = ""
    if baseline is not None and cell is not baseline:
        gain = paired_difference(
            cell.by_seed(final_accuracy), baseline.by_seed(final_accuracy)
        ).summary
        difference = "" if gain is None else interval(gain)
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


def final_slots(cell: CellRuns, num_classes: int = 10) -> list[float]:
    """Return the mean number of slots of each class at the end."""
    ends = [
        dict(zip(record.memory[-1].classes, record.memory[-1].counts, strict=True))
        for record in cell.records
    ]
    return [sum(end.get(label, 0) for end in ends) / len(ends) for label in range(num_classes)]


if __name__ == "__main__":
    main()
