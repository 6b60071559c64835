import dataclasses
import json

import pytest

from recollect.experiments.record import Record
from recollect.metrics import AccuracyMatrix, average_accuracy, forgetting
from recollect.reports.cells import (
    accuracy_just_learnt,
    accuracy_over_time,
    anytime_accuracy,
    examples_per_second,
    failed_runs,
    final_accuracy,
    final_forgetting,
    group_cells,
    latest_runs,
    prequential_accuracy,
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
    assert anytime_accuracy(small) is None


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


def test_labels_name_what_sets_namesakes_apart(runs: list[Record]) -> None:
    labels = {cell.label for cell in group_cells(runs) if cell.benchmark == "mnist-permuted"}
    assert labels == {
        "ER",
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


def test_passes_set_cells_apart(runs: list[Record]) -> None:
    other = record_like(runs[1], spec_hash="other", passes="separate")
    assert [c.label for c in group_cells([runs[1], other])] == ["ER · joint", "ER · separate"]


def test_a_run_done_after_it_failed_counts_as_done(runs: list[Record]) -> None:
    failed = record_like(runs[0], status="failed", error="boom", started_at="2999")
    assert latest_runs([failed, runs[0]]) == [runs[0]]
    assert latest_runs([runs[0], failed]) == [runs[0]]
    assert failed_runs([failed, runs[1]]) == [failed]
    assert [cell.label for cell in group_cells([failed, runs[1]])] == ["ER"]
