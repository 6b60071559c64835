"""What a few seeds can tell: intervals, paired differences, and a correction for many tests."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

import numpy as np

CONFIDENCE: Final = 0.95
LEVEL: Final = 0.05
FEWEST_SEEDS: Final = 6  # 2 / 2^6 is the first that falls below 5 %
_MOST_EXACT: Final = 16  # 2^16 sign flips take a few milliseconds

PairedTest = Literal["exact sign-flip", "paired t", "none"]


@dataclass(frozen=True)
class Summary:
    """A mean over seeds and how well it is known.

    Attributes:
        n: Number of seeds.
        mean: Their mean.
        sd: Standard deviation over seeds, divisor n - 1. None for one seed.
        low: Lower end of the 95 % Student t interval of the mean. None for one seed.
        high: Its upper end.
    """

    n: int
    mean: float
    sd: float | None
    low: float | None
    high: float | None

    @property
    def half_width(self) -> float | None:
        """Half the interval: what stands behind +/-. None for one seed."""
        return None if self.high is None else self.high - self.mean


@dataclass(frozen=True)
class PairedDifference:
    """How far one method is from another on the same seeds.

    Attributes:
        summary: Of the differences, first minus second, seed by seed. None without common seeds.
        p_value: Two-sided, of "no difference". None for fewer than two common seeds.
        test: Which test gave it.
        adjusted: The p-value after Holm's correction, where one was made.
    """

    summary: Summary | None
    p_value: float | None
    test: PairedTest
    adjusted: float | None = None

    @property
    def is_certain(self) -> bool:
        """Whether the difference is significant at 5 %, corrected if it was one of several."""
        p_value = self.p_value if self.adjusted is None else self.adjusted
        return p_value is not None and p_value < LEVEL

    def turned(self) -> "PairedDifference":
        """Return the same difference the other way round, not corrected."""
        found = self.summary
        if found is None:
            return self
        low = None if found.high is None else -found.high
        high = None if found.low is None else -found.low
        # Zero stays zero: -0.0 would be printed with its sign.
        other = Summary(found.n, 0.0 - found.mean, found.sd, low, high)
        return PairedDifference(other, self.p_value, self.test)

    @property
    def has_enough_seeds(self) -> bool:
        """Whether the test could have called any difference certain with so few seeds."""
        return self.summary is not None and self.summary.n >= FEWEST_SEEDS


def summarise(values: Sequence[float]) -> Summary:
    r"""Return n, mean, standard deviation and the 95 % interval mean +/- t_(n-1) sd / sqrt(n).

    One value has no spread: `sd` and the interval are None, and a caller that prints it must say
    so.

    Example:
        >>> summary = summarise([0.0, 1.0, 2.0])
        >>> summary.mean, summary.sd, round(summary.half_width or 0, 3)
        (1.0, 1.0, 2.484)

    Raises:
        ValueError: There is no value, or one is not finite.
    """
    if not values:
        raise ValueError("`values` has 0 entries; a mean needs at least one.")
    if not all(math.isfinite(value) for value in values):
        raise ValueError(f"`values` has entries that are not finite: {list(values)}.")
    n = len(values)
    mean = math.fsum(values) / n
    if n == 1:
        return Summary(1, mean, None, None, None)
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    half = _t_quantile(n - 1) * sd / math.sqrt(n)
    return Summary(n, mean, sd, mean - half, mean + half)


def paired_difference(first: Mapping[int, float], second: Mapping[int, float]) -> PairedDifference:
    r"""Compare two methods seed by seed, over the seeds that both have.

    The same seed gives both methods the same stream and the same initial weights, so the spread
    between seeds, often larger than the gap between methods, cancels.

    Up to 16 common seeds the test is the exact sign-flip permutation test: if the methods do not
    differ, each difference is as likely with the other sign; the p-value is the share of the 2^n
    sign patterns whose mean is at least as far from 0. It assumes no distribution, and with n
    seeds it cannot fall below 2 / 2^n: five seeds never reach 5 %. Above 16 it is the paired t
    test, whose assumption is mild by then.

    Args:
        first: Value by seed.
        second: Value by seed.

    Example:
        >>> difference = paired_difference({0: 3.0, 1: 2.0, 2: 9.0}, {0: 1.0, 1: 1.0, 3: 0.0})
        >>> difference.summary.n, difference.summary.mean, difference.p_value
        (2, 1.5, 0.5)
    """
    seeds = sorted(first.keys() & second.keys())
    differences = [first[seed] - second[seed] for seed in seeds]
    if not differences:
        return PairedDifference(None, None, "none")
    summary = summarise(differences)
    if summary.n == 1:
        return PairedDifference(summary, None, "none")
    if summary.n <= _MOST_EXACT:
        return PairedDifference(summary, sign_flip_p_value(differences), "exact sign-flip")
    if not summary.sd:
        return PairedDifference(summary, 0.0 if summary.mean else 1.0, "paired t")
    return PairedDifference(summary, _t_p_value(summary), "paired t")


def sign_flip_p_value(differences: Sequence[float]) -> float:
    """Return the exact two-sided p-value over all 2^n sign patterns.

    Example:
        >>> sign_flip_p_value([1.0, 2.0, 3.0])
        0.25

    Raises:
        ValueError: There are no differences, or more than 16.
    """
    n = len(differences)
    if not 1 <= n <= _MOST_EXACT:
        raise ValueError(
            f"`differences` has {n} entries; the exact test takes 1 to {_MOST_EXACT}. Use "
            "`paired_difference`, which changes to a t test above that."
        )
    # A flip and its mirror image are equally far out, so half of them are enough.
    patterns = np.arange(2 ** (n - 1))[:, None] >> np.arange(n - 1) & 1
    signs = np.concatenate([np.ones((len(patterns), 1)), 1.0 - 2.0 * patterns], axis=1)
    distances = np.abs(signs @ np.asarray(differences, dtype=np.float64))
    observed = abs(math.fsum(differences))
    # Sums of the same numbers in another order differ in the last bits: count those as ties.
    slack = 1e-9 * float(np.abs(differences).sum())
    return float(np.mean(distances >= observed - slack))


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct the p-values of several tests (Holm's step-down method).

    Sorted ascending, the k-th of m (from 0) is multiplied by m - k, never falls below the one
    before it, and is at most 1. Calling those below 5 % differences keeps the chance of even one
    false call under 5 %, whatever the dependence between the tests.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [0.0] * len(p_values)
    so_far = 0.0
    for rank, index in enumerate(order):
        so_far = max(so_far, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = so_far
    return adjusted


def gap_p_value(gap: float, means: Sequence[tuple[float, int]]) -> float:
    r"""Return the two-sided p-value of a gap between independent means (Welch's t test).

    Args:
        gap: A sum or difference of means.
        means: The means it consists of, each as the standard deviation and number of its values.

    The gap's variance is \sum_k s_k^2 / n_k, its degrees of freedom those of Welch and
    Satterthwaite.

    Example:
        >>> round(gap_p_value(2.0, [(1.0, 10), (1.0, 10)]), 5)
        0.00029

    Raises:
        ValueError: No mean varies, or one is of fewer than two values.
    """
    if any(n < 2 for _, n in means):
        raise ValueError(f"`means` is {list(means)}; each needs at least two values.")
    parts = [(sd**2 / n, n - 1) for sd, n in means]
    variance = math.fsum(part for part, _ in parts)
    if not variance:
        raise ValueError(f"`means` is {list(means)}; at least one has to vary.")
    degrees = variance**2 / math.fsum(part**2 / free for part, free in parts)
    return _t_tail(gap / math.sqrt(variance), degrees)


def corrected(differences: Sequence[PairedDifference]) -> list[PairedDifference]:
    """Return the differences with `adjusted` set by Holm over those that have a p-value."""
    tested = [d.p_value for d in differences if d.p_value is not None]
    adjusted = iter(holm(tested))
    return [
        PairedDifference(d.summary, d.p_value, d.test, next(adjusted))
        if d.p_value is not None
        else d
        for d in differences
    ]


# Student's distribution from scipy.special, which scipy.stats takes it from: scipy.stats takes four
# times as long to import, and a hundred times as long to call. It waits until it is needed.
@lru_cache(maxsize=1024)
def _t_quantile(degrees: int) -> float:
    from scipy import special

    return float(special.stdtrit(degrees, (1 + CONFIDENCE) / 2))


def _t_tail(statistic: float, degrees: float) -> float:
    from scipy import special

    return float(2 * special.stdtr(degrees, -abs(statistic)))


def _t_p_value(summary: Summary) -> float:
    """Return the p-value of the t test that a mean is 0."""
    assert summary.sd
    return _t_tail(summary.mean * math.sqrt(summary.n) / summary.sd, summary.n - 1)
