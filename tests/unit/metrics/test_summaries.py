"""One matrix worked by hand, in tenths.

            tested on 0   1   2
trained on 0        9   .   .
trained on 1        4   8   .
trained on 2        6   9   7

Segment 0 fell from 9 to 6; segment 1 rose from 8 to 9.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.metrics import (
    AccuracyMatrix,
    anytime_average_accuracy,
    average_accuracy,
    backward_transfer,
    forgetting,
    forward_transfer,
    learning_accuracy,
)

ROWS = [[9], [4, 8], [6, 9, 7]]


def _matrix(rows: list[list[int]]) -> AccuracyMatrix:
    matrix = AccuracyMatrix()
    for trained_on, row in enumerate(rows):
        for tested_on, correct in enumerate(row):
            matrix.add(trained_on=trained_on, tested_on=tested_on, correct=correct, total=10)
    return matrix


@pytest.fixture
def matrix() -> AccuracyMatrix:
    return _matrix(ROWS)


def test_average_accuracy_is_the_mean_of_the_last_row(matrix: AccuracyMatrix) -> None:
    assert average_accuracy(matrix) == pytest.approx((0.6 + 0.9 + 0.7) / 3)


def test_average_accuracy_earlier_leaves_out_what_had_not_come(matrix: AccuracyMatrix) -> None:
    assert average_accuracy(matrix, after=1) == pytest.approx(0.6)
    matrix.add(trained_on=1, tested_on=2, correct=0, total=10)
    assert average_accuracy(matrix, after=1) == pytest.approx(0.6)


def test_anytime_accuracy_is_the_mean_of_the_averages_over_time(matrix: AccuracyMatrix) -> None:
    assert anytime_average_accuracy(matrix) == pytest.approx((0.9 + 0.6 + 2.2 / 3) / 3)


def test_anytime_accuracy_of_a_curve_is_its_mean() -> None:
    assert anytime_average_accuracy([0.5, 0.25, 0.75]) == 0.5


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ("cited", ((0.9 - 0.6) + (0.8 - 0.9)) / 2),  # a rise counts against the falls
        ("mir", ((0.9 - 0.6) + (0.9 - 0.9)) / 2),  # the last evaluation may be the best
        ("raptormai", ((0.9 - 0.6) + 0.0 + 0.0) / 3),  # divided by all three segments
    ],
)
def test_the_three_definitions_of_forgetting(
    matrix: AccuracyMatrix, definition: Any, expected: float
) -> None:
    assert forgetting(matrix, definition=definition) == pytest.approx(expected)


def test_the_cited_definition_is_the_default(matrix: AccuracyMatrix) -> None:
    assert forgetting(matrix) == pytest.approx(0.1)


def test_a_segment_known_before_its_time_counts_as_known(matrix: AccuracyMatrix) -> None:
    matrix.add(trained_on=0, tested_on=1, correct=10, total=10)
    assert forgetting(matrix) == pytest.approx(((0.9 - 0.6) + (1.0 - 0.9)) / 2)


def test_only_cited_forgetting_is_negative_when_everything_gets_better() -> None:
    better = _matrix([[1], [5, 5], [9, 9, 9]])
    assert forgetting(better) == pytest.approx(-0.4)
    assert forgetting(better, definition="mir") == 0
    assert forgetting(better, definition="raptormai") == 0


@given(st.data(), st.integers(2, 6))
def test_the_definitions_keep_their_order_on_any_matrix(data: st.DataObject, size: int) -> None:
    rows = [
        data.draw(st.lists(st.integers(0, 10), min_size=k, max_size=k)) for k in range(1, size + 1)
    ]
    matrix = _matrix(rows)
    cited, mir, raptormai = (
        forgetting(matrix, definition=definition) for definition in ("cited", "mir", "raptormai")
    )
    assert -1 <= cited <= mir + 1e-12
    assert 0 <= mir <= 1
    assert raptormai == pytest.approx(mir * (size - 1) / size)
    # The best so far is at least what was known right after learning.
    assert cited >= -backward_transfer(matrix) - 1e-12
    # What is known at the end is what was learnt, less what was lost.
    known = learning_accuracy(matrix) + backward_transfer(matrix) * (size - 1) / size
    assert average_accuracy(matrix) == pytest.approx(known)


def test_one_segment_cannot_be_forgotten() -> None:
    assert forgetting(_matrix([[3]])) == 0


def test_a_missing_evaluation_is_not_passed_over() -> None:
    gap = AccuracyMatrix()
    gap.add(trained_on=0, tested_on=0, correct=9, total=10)
    gap.add(trained_on=2, tested_on=0, correct=1, total=10)
    gap.add(trained_on=2, tested_on=1, correct=1, total=10)
    with pytest.raises(ValueError, match="no counts for `trained_on` 1, `tested_on` 0"):
        forgetting(gap)


def test_an_unknown_definition_is_refused(matrix: AccuracyMatrix) -> None:
    unknown: Any = "best"
    with pytest.raises(ValueError, match="`definition` is 'best'"):
        forgetting(matrix, definition=unknown)


def test_learning_accuracy_is_taken_right_after_each_segment(matrix: AccuracyMatrix) -> None:
    learnt = [matrix.accuracy(trained_on=k, tested_on=k) for k in range(3)]
    assert learnt[:2] == [0.9, 0.8]
    assert learning_accuracy(matrix) == pytest.approx((0.9 + 0.8 + learnt[2]) / 3)
    assert learning_accuracy(_matrix([[3]])) == pytest.approx(0.3)


def test_backward_transfer_compares_the_end_with_the_moment_of_learning(
    matrix: AccuracyMatrix,
) -> None:
    assert backward_transfer(matrix) == pytest.approx(((0.6 - 0.9) + (0.9 - 0.8)) / 2)


def test_forward_transfer_compares_with_the_untrained_model(matrix: AccuracyMatrix) -> None:
    matrix.add(trained_on=0, tested_on=1, correct=3, total=10)
    matrix.add(trained_on=1, tested_on=2, correct=2, total=10)
    transfer = forward_transfer(matrix, untrained=[0.5, 0.1, 0.15])
    assert transfer == pytest.approx(((0.3 - 0.1) + (0.2 - 0.15)) / 2)


def test_forward_transfer_needs_a_baseline_for_each_segment(matrix: AccuracyMatrix) -> None:
    with pytest.raises(ValueError, match="`untrained` has 2 entries for 3 segments"):
        forward_transfer(matrix, untrained=[0.1, 0.1])


def test_transfer_needs_two_segments() -> None:
    with pytest.raises(ValueError, match="at least two segments"):
        backward_transfer(_matrix([[3]]))


def test_an_empty_matrix_has_no_summary() -> None:
    for summary in (
        average_accuracy,
        anytime_average_accuracy,
        forgetting,
        learning_accuracy,
        backward_transfer,
    ):
        with pytest.raises(ValueError, match="`matrix` has 0 evaluations"):
            summary(AccuracyMatrix())


def test_an_empty_curve_has_no_mean() -> None:
    with pytest.raises(ValueError, match="`source` has 0 points"):
        anytime_average_accuracy([])
