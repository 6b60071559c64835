"""What a method adds at the end of a stream, and on the way there."""

import dataclasses
from pathlib import Path

import pytest
from studies.gains.any_time import any_time_table, draw_any_time, pairs
from tests.unit.reports.runs import read_runs

from recollect.experiments.records.record import CurvePoint, Record

TEST = '{"evaluation":{"on":"test"},"optimizer":{"lr":0.05}}'


@pytest.fixture(scope="module")
def er() -> list[Record]:
    """Three real runs, as test runs of the paper's size."""
    runs = [r for r in read_runs() if r.method == "er"][:3]
    return [dataclasses.replace(r, spec=TEST, capacity=500) for r in runs]


def known(records: list[Record], method: str, *right: int, passes: str = "joint") -> list[Record]:
    """Let runs answer so many of 100 right at evenly spaced points, the last at the end."""
    curve = tuple(CurvePoint(10 * k, (count,), (100,)) for k, count in enumerate(right, start=1))
    return [
        dataclasses.replace(
            r,
            method=method,
            spec_hash=method,
            passes=passes,
            curve=curve,
            segment_names=("only",),
            correct=((right[-1],),),
            total=(100,),
        )
        for r in records
    ]


def test_what_is_gained_at_the_end_may_be_lost_on_the_way(er: list[Record]) -> None:
    plain, other = known(er, "er", 50, 50, 50), known(er, "er-p", 20, 50, 60)
    (row,) = any_time_table([*plain, *other], []).splitlines()[2:]
    entries = [entry.strip() for entry in row.split("|")[1:-1]]
    minus = "\N{MINUS SIGN}"
    assert entries[:5] == ["MNIST-S", "its own", "ER-P minus ER", "3", "+10.0 [+10.0, +10.0]"]
    assert entries[5] == f"{minus}6.7 [{minus}6.7, {minus}6.7]"
    ((_, pair),) = pairs("mnist-split", [*plain, *other], [])
    gained = {seen: summary.mean for seen, summary in pair.over_time().items()}
    assert gained == pytest.approx({10: -0.3, 20: 0.0, 30: 0.1})


def test_only_common_seeds_are_compared(er: list[Record]) -> None:
    plain, other = known(er, "er", 50, 50), known(er, "er-p", 60, 60)
    ((_, pair),) = pairs("mnist-split", [*plain[:2], *other[1:]], [])
    assert pair.at_the_end.summary is not None
    assert pair.at_the_end.summary.n == 1
    assert {summary.n for summary in pair.over_time().values()} == {1}
    assert list(pairs("mnist-split", [*plain[:1], *other[1:]], [])) == []


def test_on_cifar_a_joint_pass_is_tuned_and_separate_ones_are_the_lineages(
    er: list[Record],
) -> None:
    runs = [dataclasses.replace(r, benchmark="cifar10-split") for r in er]
    joint = [*known(runs, "er", 50), *known(runs, "er-c", 55)]
    separate = [
        *known(runs, "er", 40, passes="separate"),
        *known(runs, "er-c", 60, passes="separate"),
    ]
    found = [
        (pair.is_lineage, pair.at_the_end.summary.mean)
        for _, pair in pairs("cifar10-split", [*joint, *separate], [*joint, *separate])
        if pair.at_the_end.summary is not None
    ]
    assert [is_lineage for is_lineage, _ in found] == [False, True]
    assert [gain for _, gain in found] == pytest.approx([0.05, 0.2])


def test_the_picture_is_drawn_with_what_there_is(er: list[Record], tmp_path: Path) -> None:
    path = tmp_path / "any-time.png"
    draw_any_time([*known(er, "er", 50, 50), *known(er, "er-p", 20, 60)], [], path)
    assert path.read_bytes().startswith(b"\x89PNG")
