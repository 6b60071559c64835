import dataclasses

import pytest

from recollect.experiments.records.record import CurvePoint, MemoryPoint, Record
from recollect.reports.cells import CellRuns, group_cells
from recollect.reports.series import (
    accuracy_curve,
    mean_matrix,
    memory_over_time,
    segment_boundaries,
)


def cell_of(record: Record, *changes: dict[str, object]) -> CellRuns:
    """A cell of one run a change, seeds counted from 0."""
    records = [
        dataclasses.replace(record, seed=seed, **change)  # type: ignore[arg-type]
        for seed, change in enumerate(changes)
    ]
    (cell,) = group_cells(records)
    return cell


def test_curves_are_averaged_where_all_seeds_have_a_point(runs: list[Record]) -> None:
    cell = cell_of(
        runs[0],
        {"curve": (CurvePoint(10, (5,), (10,)), CurvePoint(20, (8, 2), (10, 10)))},
        {"curve": (CurvePoint(20, (10, 6), (10, 10)), CurvePoint(30, (1, 1), (10, 10)))},
    )
    curve = accuracy_curve(cell)
    assert curve is not None
    assert curve.seen == (20,)
    assert curve.summaries[0].mean == pytest.approx((0.5 + 0.8) / 2)


def test_no_curve_is_none(runs: list[Record]) -> None:
    assert accuracy_curve(cell_of(runs[0], {"curve": ()})) is None


def test_boundaries_are_where_a_segment_is_first_covered(runs: list[Record]) -> None:
    record = next(r for r in runs if r.benchmark == "mnist-split")
    assert segment_boundaries(record) == [1000, 2000, 3000, 4000]


def test_matrices_are_averaged_and_the_future_is_empty(runs: list[Record]) -> None:
    cell = cell_of(
        runs[0],
        {"correct": ((10,), (4, 6)), "total": (10, 10)},
        {"correct": ((8, 0), (2, 10)), "total": (10, 10)},
    )
    assert mean_matrix(cell) == [[0.9, None], [pytest.approx(0.3), 0.8]]


def test_memories_are_averaged_class_by_class(runs: list[Record]) -> None:
    quantiles = (1.0, 1.0, 1.0, 1.0, 1.0)
    first = MemoryPoint(10, (0, 1), (4, 2), quantiles, quantiles, (0,), (3,), 5.0, None)
    second = MemoryPoint(10, (1, 2), (2, 4), quantiles, quantiles)
    memory = memory_over_time(cell_of(runs[0], {"memory": (first,)}, {"memory": (second,)}))
    assert memory is not None
    assert memory.names == ("0", "1", "2")
    assert memory.counts == ((2.0, 2.0, 2.0),)
    assert memory.evicted == ((1.5, 0.0, 0.0),)
    assert memory.evicted_age == (5.0,)
    assert memory.evicted_score == (None,)


def test_many_classes_are_counted_in_groups(runs: list[Record]) -> None:
    quantiles = (1.0, 1.0, 1.0, 1.0, 1.0)
    point = MemoryPoint(10, tuple(range(100)), (2,) * 100, quantiles, quantiles)
    memory = memory_over_time(cell_of(runs[0], {"memory": (point,)}))
    assert memory is not None
    assert memory.names[:2] == ("0-4", "5-9")
    assert memory.counts == ((10.0,) * 20,)


def test_real_memories_add_up_to_their_capacity(runs: list[Record]) -> None:
    for cell in group_cells(runs):
        memory = memory_over_time(cell)
        assert (memory is None) == (cell.method == "van")
        if memory is not None:
            assert sum(memory.counts[-1]) == pytest.approx(cell.capacity)
