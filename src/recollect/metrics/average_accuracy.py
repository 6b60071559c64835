"""How good the learner is over all segments: at the end, and at any time."""

from collections.abc import Sequence
from statistics import fmean

from recollect.metrics.matrix import AccuracyMatrix


def average_accuracy(matrix: AccuracyMatrix, *, after: int | None = None) -> float:
    r"""Return the mean accuracy over the segments seen: $A_k = 1/(k+1) \sum_{j \le k} a_{k,j}$.

    Args:
        matrix: Counts of every segment seen, at time k at least.
        after: k, the segment just trained on; the last one if None.

    Example:
        >>> matrix = AccuracyMatrix()
        >>> matrix.add(trained_on=1, tested_on=0, correct=1, total=2)
        >>> matrix.add(trained_on=1, tested_on=1, correct=4, total=4)
        >>> average_accuracy(matrix)
        0.75
    """
    last = last_evaluation(matrix) if after is None else after
    return fmean(matrix.accuracy(trained_on=last, tested_on=j) for j in range(last + 1))


def anytime_average_accuracy(source: AccuracyMatrix | Sequence[float]) -> float:
    r"""Return the mean over time of the average accuracy: $1/T \sum_k A_k$ (AAA).

    Args:
        source: A matrix with an evaluation after every segment, or a curve: the average accuracies
            measured at evenly spaced times.
    """
    if isinstance(source, AccuracyMatrix):
        curve: Sequence[float] = [
            average_accuracy(source, after=k) for k in range(last_evaluation(source) + 1)
        ]
    else:
        curve = source
    if not curve:
        raise ValueError("`source` has 0 points; pass at least one average accuracy.")
    return fmean(curve)


def last_evaluation(matrix: AccuracyMatrix) -> int:
    """Return the number of the last segment trained on.

    Raises:
        ValueError: The matrix is empty.
    """
    if not matrix.num_evaluations:
        raise ValueError("`matrix` has 0 evaluations; `add` counts first.")
    return matrix.num_evaluations - 1
