"""What was known along the stream, and not only at its end."""

from collections.abc import Sequence
from statistics import fmean


def area_under_accuracy(moments: Sequence[int], accuracies: Sequence[float]) -> float:
    r"""Return the area under the any-time accuracy, as a share of the stream: $A_{AUC}$.

        A_AUC = sum_k a_k (n_k - n_(k-1)) / n_K,   n_0 = 0

    With evenly spaced moments it is their mean. A method that learns late, or that drops in
    between, has a small area whatever it reaches at the end.

    Args:
        moments: n, stream examples seen at each look, ascending.
        accuracies: a, the average accuracy there, over what was met by then.

    Example:
        >>> area_under_accuracy([10, 20, 40], [1.0, 0.5, 0.25])
        0.5

    References:
        Koh et al. 2022 (i-Blurry), where the moments are evenly spaced, and accuracy is over all
        classes seen so far.
    """
    if not moments or len(moments) != len(accuracies):
        raise ValueError(
            f"`moments` has {len(moments)} entries and `accuracies` {len(accuracies)}; pass one "
            "accuracy per moment, and at least one."
        )
    starts = [0, *moments[:-1]]
    if any(stop <= start for start, stop in zip(starts, moments, strict=True)):
        raise ValueError(f"`moments` is {list(moments)}; they have to ascend from above 0.")
    widths = [stop - start for start, stop in zip(starts, moments, strict=True)]
    areas = (a * width for a, width in zip(accuracies, widths, strict=True))
    return sum(areas) / moments[-1]


def minimum_accuracy(looks: Sequence[Sequence[float]]) -> float:
    r"""Return how far segments that were over fell at their worst: min-ACC.

        min-ACC = 1/(k-1) sum over i < k of min over looks after segment i of A(E_i)

    Between two ends of segments accuracy may drop and come back (the stability gap); accuracy and
    forgetting, which look at the ends alone, do not see it. Nor does this between two looks: with
    more looks it can only be lower.

    Args:
        looks: Accuracy on each segment met so far, at each look, in order. A segment is over once
            a later one has been met.

    Example:
        >>> minimum_accuracy([[1.0], [0.25, 1.0], [0.75, 0.5]])
        0.25

    References:
        De Lange et al. 2023, Continual evaluation for lifelong learning, who look after every
        update. Their code, too, leaves out the looks at a segment while it is learnt.
    """
    num_met = _num_met(looks)
    if num_met < 2:
        raise ValueError("`looks` has met 1 segment; a minimum is over segments before the last.")
    return fmean(
        min(look[segment] for look in looks if len(look) > segment + 1)
        for segment in range(num_met - 1)
    )


def worst_case_accuracy(looks: Sequence[Sequence[float]]) -> float:
    r"""Return what can be relied on: the last segment as it is known, the others at their worst.

        WC-ACC = 1/k A(E_k) + (1 - 1/k) min-ACC

    Args:
        looks: As for `minimum_accuracy`.

    Example:
        >>> worst_case_accuracy([[1.0], [0.25, 1.0], [0.75, 0.5]])
        0.375

    References:
        De Lange et al. 2023.
    """
    num_met = _num_met(looks)
    last = looks[-1][-1]
    if num_met == 1:
        return last
    return last / num_met + (1 - 1 / num_met) * minimum_accuracy(looks)


def _num_met(looks: Sequence[Sequence[float]]) -> int:
    if not looks or not looks[0]:
        raise ValueError("`looks` has none with a segment; pass one accuracy per segment met.")
    sizes = [len(look) for look in looks]
    if sizes != sorted(sizes):
        raise ValueError(f"`looks` are at {sizes} segments; a segment once met stays met.")
    return sizes[-1]
