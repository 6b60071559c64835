"""The two numbers of a run that its worker reports while others still run."""

from recollect.experiments.records.record import Record
from recollect.metrics import AccuracyMatrix, average_accuracy, forgetting


def accuracy_matrix(record: Record) -> AccuracyMatrix:
    """Return the counts of a run as a matrix; a row may be longer than the segments met."""
    matrix = AccuracyMatrix()
    for trained_on, row in enumerate(record.correct):
        for tested_on, correct in enumerate(row):
            total = record.total[tested_on]
            matrix.add(trained_on=trained_on, tested_on=tested_on, correct=correct, total=total)
    return matrix


def accuracy_and_forgetting(record: Record) -> tuple[float, float]:
    """Return average accuracy and forgetting, as cited, at the end of a run that is done."""
    matrix = accuracy_matrix(record)
    return average_accuracy(matrix), forgetting(matrix)
