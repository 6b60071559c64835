"""How much of what was known has been lost."""

from statistics import fmean
from typing import Literal, get_args

from recollect.metrics.average_accuracy import last_evaluation
from recollect.metrics.matrix import AccuracyMatrix

ForgettingDefinition = Literal["cited", "mir", "raptormai"]


def forgetting(matrix: AccuracyMatrix, *, definition: ForgettingDefinition = "cited") -> float:
    r"""Return the mean drop from the best accuracy a segment ever had to its last one.

    With T segments and last evaluation $T-1$, the drop of segment j is

        cited:      f_j = max over l <  T-1 of a_(l,j), minus a_(T-1,j);   mean over j < T-1
        mir:        f_j = max over l <= T-1 of a_(l,j), minus a_(T-1,j);   mean over j < T-1
        raptormai:  f_j as mir;                                            mean over all j

    So only the cited one can be negative (a segment that got better), `mir` is never below it, and
    `raptormai` is `mir` times (T-1)/T unless an earlier evaluation of the last segment was better.
    A segment tested before it was trained on counts in the maximum, as the definitions say.

    Args:
        matrix: Counts of every segment seen after every segment trained on.
        definition: Which of the three. Say it wherever the number is shown.

    Returns:
        A share from -1 to 1; 0 after a single segment, which cannot have been forgotten.

    References:
        Chaudhry et al. 2018 as cited by the paper; paper note P9 for the other two.
    """
    if definition not in get_args(ForgettingDefinition):
        raise ValueError(
            f"`definition` is {definition!r}; choose 'cited', 'mir' or 'raptormai' (note P9)."
        )
    last = last_evaluation(matrix)
    if last == 0:
        matrix.counts(trained_on=0, tested_on=0)
        return 0.0
    considered = last if definition == "cited" else last + 1
    averaged = last + 1 if definition == "raptormai" else last
    return fmean(
        _best(matrix, j, considered) - matrix.accuracy(trained_on=last, tested_on=j)
        for j in range(averaged)
    )


def _best(matrix: AccuracyMatrix, segment: int, num_considered: int) -> float:
    return max(
        matrix.accuracy(trained_on=row, tested_on=segment)
        for row in range(num_considered)
        # Before its own training a segment need not have been tested; from then on it must.
        if row >= segment or matrix.has(trained_on=row, tested_on=segment)
    )
