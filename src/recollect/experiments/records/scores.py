"""The numbers of a run that are asked for while others still run."""

from collections.abc import Sequence

from recollect.experiments.records.record import Record
from recollect.metrics import AccuracyMatrix, area_under_accuracy, average_accuracy, forgetting


def accuracy_matrix(record: Record) -> AccuracyMatrix:
    """Return the counts of a run as a matrix; a row may be longer than the segments met."""
    matrix = AccuracyMatrix()
    for trained_on, row in enumerate(record.correct):
        for tested_on, correct in enumerate(row):
            total = record.total[tested_on]
            matrix.add(trained_on=trained_on, tested_on=tested_on, correct=correct, total=total)
    return matrix


def looks(record: Record) -> list[list[float]]:
    """Return accuracy on each segment met so far, at each look along the stream."""
    return [
        [correct / total for correct, total in zip(point.correct, point.total, strict=True)]
        for point in record.curve
    ]


def anytime_area(record: Record) -> float:
    """Return the area under the any-time accuracy of a run that has a curve."""
    moments = [point.seen for point in record.curve]
    return area_under_accuracy(moments, [point.accuracy for point in record.curve])


def accuracy_and_forgetting(record: Record) -> tuple[float, float]:
    """Return average accuracy and forgetting, as cited, at the end of a run that is done."""
    matrix = accuracy_matrix(record)
    return average_accuracy(matrix), forgetting(matrix)


def recent_accuracy(curve: Sequence[tuple[int, float]]) -> float:
    """Return the mean any-time accuracy over the latter half of what was seen.

    One point says little: it falls whenever a segment has just begun.

    Args:
        curve: Positions in the stream, ascending, and the accuracy at each.

    Example:
        >>> recent_accuracy([(100, 0.9), (200, 0.5), (300, 0.4), (400, 0.6)])
        0.5
    """
    last, _ = curve[-1]
    recent = [accuracy for seen, accuracy in curve if 2 * seen >= last]
    return sum(recent) / len(recent)
