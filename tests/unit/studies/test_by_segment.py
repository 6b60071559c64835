"""Where a gain sits: slots and accuracies of the two runs of a seed, and nothing else."""

import dataclasses
from pathlib import Path

import pytest
from studies.crs.by_segment import SegmentChange, by_segment_table, changes, draw_by_segment
from tests.unit.reports.runs import read_runs

from recollect.experiments.records.record import Record
from recollect.reports.cells import CellRuns, group_cells

MINUS = "\N{MINUS SIGN}"


@pytest.fixture(scope="module")
def first() -> Record:
    return next(record for record in read_runs() if record.method == "er")


def run(record: Record, seed: int, slots: tuple[int, ...], known: tuple[int, int]) -> Record:
    """Make a run of two segments with two classes each, `known` right of 100 at the end."""
    point = dataclasses.replace(record.memory[-1], classes=(0, 1, 2, 3), counts=slots)
    return dataclasses.replace(
        record, seed=seed, memory=(point,), correct=((90, 0), known), total=(100, 100)
    )


def test_a_class_without_slots_moves_no_other_to_another_segment(first: Record) -> None:
    er = run(first, 1, (1, 2, 3, 4), (10, 80))
    without = dataclasses.replace(er.memory[-1], classes=(0, 2, 3), counts=(5, 3, 4))
    one, two = changes(cell(er), cell(dataclasses.replace(er, memory=(without,))))
    assert (one.slots, two.slots) == ([(3, 5)], [(7, 7)])


def test_five_segments_are_drawn(first: Record, tmp_path: Path) -> None:
    def five(seed: int, known: int) -> Record:
        classes = tuple(range(10))
        counts = tuple(1 + (seed * label) % 7 for label in classes)
        point = dataclasses.replace(first.memory[-1], classes=classes, counts=counts)
        rows = ((known + seed, known, known, known - seed, known),)
        return dataclasses.replace(
            first, seed=seed, memory=(point,), correct=rows, total=(100,) * 5
        )

    path = tmp_path / "segments.png"
    seeds = range(5)
    draw_by_segment(cell(*(five(s, 30) for s in seeds)), cell(*(five(s, 40) for s in seeds)), path)
    assert path.read_bytes().startswith(b"\x89PNG")


def cell(*records: Record) -> CellRuns:
    (found,) = group_cells(records)
    return found


def test_seeds_are_paired_and_classes_counted_by_segment(first: Record) -> None:
    er = cell(*(run(first, seed, (1, 2, 3, 4), (10, 80)) for seed in (1, 2, 3)))
    crs = cell(run(first, 2, (5, 1, 2, 2), (30, 70)), run(first, 9, (0, 0, 0, 0), (0, 0)))
    one, two = changes(er, crs)
    assert (one.slots, one.known) == ([(3, 6)], [(0.1, 0.3)])
    assert (two.slots, two.known) == ([(7, 4)], [(0.8, 0.7)])
    rows = by_segment_table(er, crs).splitlines()[2:]
    assert rows == [
        "| 1 | 3 | 6 | 10.0 | 30.0 | +20.0 one seed |  |",
        f"| 2 | 7 | 4 | 80.0 | 70.0 | {MINUS}10.0 one seed |  |",
    ]


def test_slots_and_gains_correlate_as_pearson_and_fisher_say() -> None:
    # Worked by hand: deviations (-1.5, -.5, .5, 1.5) and (-1, -1, 1, 1) give r = 4 / sqrt(5 * 4).
    change = SegmentChange([(0, n) for n in (1, 2, 3, 4)], [(0.0, g) for g in (0, 0, 0.2, 0.2)])
    found = change.correlation()
    assert found is not None
    assert found == pytest.approx((0.8944, -0.4749, 0.9978), abs=1e-4)
    still = SegmentChange([(0, 1)] * 4, change.known)
    assert still.correlation() is None
    assert SegmentChange(change.slots[:3], change.known[:3]).correlation() is None
