"""How well segments are learnt, and what learning one does to the others."""

from collections.abc import Sequence
from statistics import fmean

from recollect.metrics.average_accuracy import last_evaluation
from recollect.metrics.matrix import AccuracyMatrix


def learning_accuracy(matrix: AccuracyMatrix) -> float:
    r"""Return how well each segment was known when just learnt: $1/T \sum_j a_{j,j}$.

    What is forgotten was learnt before: a method that learns less forgets less. Average accuracy at
    the end is learning accuracy plus $(T-1)/T$ times backward transfer.

    References:
        Riemer et al. 2019, LA.
    """
    return fmean(
        matrix.accuracy(trained_on=j, tested_on=j) for j in range(last_evaluation(matrix) + 1)
    )


def backward_transfer(matrix: AccuracyMatrix) -> float:
    r"""Return how later learning changed earlier segments: $1/(T-1) \sum_j a_{T-1,j} - a_{j,j}$.

    Negative when learning new segments hurts old ones.

    References:
        Lopez-Paz and Ranzato 2017, BWT.
    """
    last = _needs_two_segments(matrix)
    return fmean(
        matrix.accuracy(trained_on=last, tested_on=j) - matrix.accuracy(trained_on=j, tested_on=j)
        for j in range(last)
    )


def forward_transfer(matrix: AccuracyMatrix, *, untrained: Sequence[float]) -> float:
    r"""Return how earlier learning helps segments to come: $1/(T-1) \sum_{j>0} a_{j-1,j} - b_j$.

    Args:
        matrix: Needs each segment tested just before it is trained on.
        untrained: b, the accuracy of the untrained model on each segment.

    References:
        Lopez-Paz and Ranzato 2017, FWT.
    """
    last = _needs_two_segments(matrix)
    if len(untrained) != last + 1:
        raise ValueError(
            f"`untrained` has {len(untrained)} entries for {last + 1} segments; "
            "pass the untrained model's accuracy on each."
        )
    return fmean(
        matrix.accuracy(trained_on=j - 1, tested_on=j) - untrained[j] for j in range(1, last + 1)
    )


def _needs_two_segments(matrix: AccuracyMatrix) -> int:
    last = last_evaluation(matrix)
    if last == 0:
        raise ValueError("`matrix` has 1 evaluation; transfer is between at least two segments.")
    return last
