import json

import pytest

from recollect.metrics import AccuracyMatrix, PrequentialAccuracy


def test_accuracy_is_correct_over_total_not_a_mean_of_batch_means() -> None:
    matrix = AccuracyMatrix()
    matrix.add(trained_on=0, tested_on=0, correct=64, total=64)
    matrix.add(trained_on=0, tested_on=0, correct=0, total=1)
    assert matrix.accuracy(trained_on=0, tested_on=0) == 64 / 65
    assert matrix.counts(trained_on=0, tested_on=0) == (64, 65)


def test_a_matrix_survives_json() -> None:
    matrix = AccuracyMatrix()
    matrix.add(trained_on=0, tested_on=0, correct=1, total=3)
    matrix.add(trained_on=1, tested_on=0, correct=2, total=3)
    again = AccuracyMatrix.from_dict(json.loads(json.dumps(matrix.as_dict())))
    assert again == matrix
    again.add(trained_on=1, tested_on=1, correct=0, total=1)
    assert again != matrix


def test_evaluations_are_counted_by_the_last_segment_trained_on() -> None:
    matrix = AccuracyMatrix()
    assert matrix.num_evaluations == 0
    matrix.add(trained_on=2, tested_on=7, correct=1, total=3)
    assert matrix.num_evaluations == 3


def test_a_cell_that_was_not_evaluated_is_refused() -> None:
    with pytest.raises(ValueError, match="no counts for `trained_on` 0, `tested_on` 1"):
        AccuracyMatrix().accuracy(trained_on=0, tested_on=1)


@pytest.mark.parametrize(("correct", "total"), [(0, 0), (3, 2), (-1, 2)])
def test_impossible_counts_are_refused(correct: int, total: int) -> None:
    with pytest.raises(ValueError, match=f"`correct` is {correct} of `total` {total}"):
        AccuracyMatrix().add(trained_on=0, tested_on=0, correct=correct, total=total)
    with pytest.raises(ValueError, match=f"`correct` is {correct} of `total` {total}"):
        PrequentialAccuracy().add(correct=correct, total=total)


def test_negative_segments_are_refused() -> None:
    with pytest.raises(ValueError, match="count segments from 0"):
        AccuracyMatrix().add(trained_on=-1, tested_on=0, correct=1, total=1)


def test_prequential_accuracy_weighs_examples_not_batches() -> None:
    running = PrequentialAccuracy()
    running.add(correct=3, total=10)
    running.add(correct=1, total=1)
    assert running.accuracy == 4 / 11
    assert PrequentialAccuracy.from_dict(running.as_dict()).accuracy == 4 / 11


def test_prequential_accuracy_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="`total` is 0"):
        _ = PrequentialAccuracy().accuracy
    assert PrequentialAccuracy.from_dict(PrequentialAccuracy().as_dict()).total == 0
