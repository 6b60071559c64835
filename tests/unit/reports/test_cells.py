import dataclasses
import json

import pytest

from recollect.experiments.records.record import CurvePoint, Record
from recollect.metrics import AccuracyMatrix, average_accuracy, forgetting
from recollect.reports.cells import (
    accuracy_just_learnt,
    accuracy_over_time,
    area_under_curve,
    examples_per_second,
    failed_runs,
    final_accuracy,
    final_forgetting,
    group_cells,
    latest_runs,
    minimum_of_curve,
    most_comparable,
    prequential_accuracy,
    share_seen,
    worst_case_of_curve,
)


def record_like(like: Record, **changes: object) -> Record:
    return dataclasses.replace(like, **changes)  # type: ignore[arg-type]


@pytest.fixture
def small(runs: list[Record]) -> Record:
    """Two segments, worked by hand: accuracies 0.9; then 0.5 and 0.8."""
    return record_like(
        runs[0],
        correct=((9, 0), (5, 16)),
        total=(10, 20),
        curve=(),
        num_examples=100,
        learn_seconds=4.0,
        prequential_correct=30,
        prequential_total=40,
    )


def test_numbers_of_a_record_worked_by_hand(small: Record) -> None:
    assert final_accuracy(small) == pytest.approx((0.5 + 0.8) / 2)
    assert final_forgetting(small) == pytest.approx(0.9 - 0.5)
    assert accuracy_just_learnt(small) == pytest.approx((0.9 + 0.8) / 2)
    assert examples_per_second(small) == 25.0
    assert prequential_accuracy(small) == 0.75
    for along in (area_under_curve, minimum_of_curve, worst_case_of_curve, share_seen):
        assert along(small) is None


def test_numbers_along_the_stream_are_taken_from_the_curve(small: Record) -> None:
    points = [(10, (9,)), (20, (2, 16)), (40, (6, 10))]  # of 10 and of 20
    curve = tuple(CurvePoint(n, correct, (10, 20)[: len(correct)]) for n, correct in points)
    seen = record_like(small, curve=curve)
    assert area_under_curve(seen) == pytest.approx((10 * 0.9 + 10 * 0.5 + 20 * 0.55) / 40)
    assert minimum_of_curve(seen) == pytest.approx(0.2)
    assert worst_case_of_curve(seen) == pytest.approx((0.5 + 0.2) / 2)
    alone = record_like(small, curve=curve[:1])
    assert minimum_of_curve(alone) is None
    assert worst_case_of_curve(alone) == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("stream", "share"),
    [({}, None), ({"budget": 1.0, "cost": 2.5}, 0.4), ({"budget": 2.0, "cost": 0.5}, 1.0)],
)
def test_the_share_seen_is_what_the_spec_left_time_for(
    small: Record, stream: dict[str, float], share: float | None
) -> None:
    assert share_seen(record_like(small, spec=json.dumps({"stream": stream}))) == share
    assert share_seen(record_like(small, spec="no JSON")) is None


def test_numbers_of_a_real_run_agree_with_the_metrics(runs: list[Record]) -> None:
    record = runs[-1]
    matrix = AccuracyMatrix()
    for i, row in enumerate(record.correct):
        for j, correct in enumerate(row):
            matrix.add(trained_on=i, tested_on=j, correct=correct, total=record.total[j])
    assert final_accuracy(record) == average_accuracy(matrix)
    assert final_forgetting(record) == forgetting(matrix)
    assert list(accuracy_over_time(record).values())[-1] == pytest.approx(average_accuracy(matrix))


def test_cells_gather_seeds_in_the_papers_order(runs: list[Record]) -> None:
    cells = group_cells(reversed(runs))
    split = [cell for cell in cells if cell.benchmark == "mnist-split"]
    assert [cell.label for cell in split] == [
        "VAN", "ER", "ER-P", "ER-C", "ER-PC", "GSS", "ER-MIR", "ER-PC-MIR",
    ]  # fmt: skip
    assert all(cell.seeds == (0, 1, 2, 3, 4, 5) for cell in split)


def test_where_memories_differ_every_label_names_its_own(runs: list[Record]) -> None:
    """Also that of a method with one size: ER with 500 slots is no match for others with 100."""
    van = record_like(runs[0], benchmark="mnist-permuted")
    labels = {cell.label for cell in group_cells([*runs, van]) if "permuted" in cell.benchmark}
    assert labels == {
        "VAN",
        "ER · 500 slots",
        "ER-MIR · 500 slots",
        "ER-MIR · 100 slots",
        "ER-PC-MIR · 500 slots",
        "ER-PC-MIR · 100 slots",
    }


def test_runs_of_different_specs_are_never_averaged(runs: list[Record]) -> None:
    spec = json.loads(runs[1].spec)
    spec["optimizer"]["lr"] = 0.1
    other = record_like(runs[1], spec_hash="other", spec=json.dumps(spec))
    cells = group_cells([runs[1], other])
    assert [cell.label for cell in cells] == ["ER · lr=0.05", "ER · lr=0.1"]
    assert [len(cell.records) for cell in cells] == [1, 1]


def test_two_states_of_a_users_file_are_told_apart_by_eight_digits(runs: list[Record]) -> None:
    def state(digit: str) -> Record:
        spec = json.loads(runs[1].spec) | {"parts": {"rule": {"where": "a.py:R", "sha256": digit}}}
        return record_like(runs[1], spec=json.dumps(spec), spec_hash=digit)

    labels = [cell.label for cell in group_cells([state("a" * 64), state("b" * 64)])]
    assert labels == ["ER · sha256=aaaaaaaa", "ER · sha256=bbbbbbbb"]


def test_how_a_value_was_found_is_no_part_of_a_name(runs: list[Record]) -> None:
    def tuned(lr: float, found: str) -> Record:
        spec = json.loads(runs[1].spec) | {"found": {"methods.er": found, "optimizer": found}}
        spec["optimizer"]["lr"] = lr
        return record_like(runs[1], spec=json.dumps(spec), spec_hash=found)

    cells = group_cells([tuned(0.12, "studies.tune: best of 18"), tuned(0.05, "lineage default")])
    assert [cell.label for cell in cells] == ["ER · lr=0.05", "ER · lr=0.12"]


def test_the_folder_of_a_users_file_is_no_part_of_a_name(runs: list[Record]) -> None:
    def own(where: str, digit: str) -> Record:
        part = {"where": where, "sha256": digit * 64}
        spec = json.loads(runs[1].spec) | {"parts": {"rule": part}}
        return record_like(runs[1], spec=json.dumps(spec), spec_hash=where)

    moved = group_cells([own("/home/me/a.py:R", "a"), own("b/a.py:R", "b")])
    assert [cell.label for cell in moved] == ["ER · sha256=aaaaaaaa", "ER · sha256=bbbbbbbb"]
    # Two classes of one file share its digest; their names tell them apart.
    classes = group_cells([own("x/a.py:R", "a"), own("a.py:S", "a")])
    assert [cell.label for cell in classes] == ['ER · where="a.py:R"', 'ER · where="a.py:S"']


def test_passes_set_cells_apart(runs: list[Record]) -> None:
    other = record_like(runs[1], spec_hash="other", passes="separate")
    assert [c.label for c in group_cells([runs[1], other])] == ["ER · joint", "ER · separate"]


def test_passes_and_protocols_that_differ_anywhere_are_named(runs: list[Record]) -> None:
    van, er, er_p = runs[:3]
    apart = group_cells([van, er, record_like(er_p, passes="separate")])
    assert [cell.label for cell in apart] == ["VAN", "ER · joint", "ER-P · separate"]
    foreign = group_cells([van, er, record_like(er_p, protocol="raptormai")])
    assert [cell.label for cell in foreign] == ["VAN · paper", "ER · paper", "ER-P · raptormai"]


def test_cells_are_comparable_that_share_memory_passes_and_protocol(runs: list[Record]) -> None:
    van, er, er_p, er_c = runs[:4]
    alike = most_comparable(
        group_cells([van, er, er_p, record_like(er_c, capacity=100, spec_hash="small")])
    )
    assert [cell.method for cell in alike] == ["van", "er", "er-p"]
    # Of groups of the same size the one with ER, which others are compared with.
    paired = [record_like(er_p, capacity=900), record_like(er_c, capacity=900), er, runs[4]]
    assert [c.method for c in most_comparable(group_cells(paired))] == ["er", "er-pc"]
    assert [c.method for c in most_comparable(group_cells([van]))] == ["van"]


def test_a_run_done_after_it_failed_counts_as_done(runs: list[Record]) -> None:
    failed = record_like(runs[0], status="failed", error="boom", started_at="2999")
    assert latest_runs([failed, runs[0]]) == [runs[0]]
    assert latest_runs([runs[0], failed]) == [runs[0]]
    assert failed_runs([failed, runs[1]]) == [failed]
    assert [cell.label for cell in group_cells([failed, runs[1]])] == ["ER"]
