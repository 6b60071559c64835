import math
from statistics import fmean, stdev

import numpy as np
import pytest
from scipy import stats

from recollect.reports.statistics import (
    corrected,
    gap_p_value,
    holm,
    paired_difference,
    sign_flip_p_value,
    summarise,
)

# Darwin's maize: height differences (eighths of an inch) of 15 crossed and self-fertilised pairs,
# the worked example of Fisher, The Design of Experiments (1935), sections 17 and 21.
DARWIN = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]


def test_fishers_exact_test_of_darwins_maize() -> None:
    # Fisher counts 835 + 28 sign patterns of 2^15 with a sum of 314 or more: 2 * 863 / 32768.
    assert sign_flip_p_value([float(d) for d in DARWIN]) == 2 * 863 / 2**15


def test_fishers_t_interval_of_darwins_maize() -> None:
    summary = summarise([float(d) for d in DARWIN])
    assert summary.mean == pytest.approx(20.933, abs=5e-4)  # Fisher's 20.933
    assert summary.sd == pytest.approx(37.744, abs=5e-4)  # 9.746 * sqrt(15)
    assert summary.low == pytest.approx(20.933 - 2.1448 * 9.7455, abs=0.01)


def test_intervals_agree_with_scipy() -> None:
    values = np.random.default_rng(0).normal(size=(20, 7))
    for row in values:
        summary = summarise(row.tolist())
        interval = stats.t.interval(0.95, 6, loc=row.mean(), scale=stats.sem(row))
        assert (summary.low, summary.high) == pytest.approx(interval)
        assert summary.sd == pytest.approx(row.std(ddof=1))


@pytest.mark.parametrize("n", [2, 5, 10])
def test_sign_flips_agree_with_scipys_permutation_test(n: int) -> None:
    rng = np.random.default_rng(n)
    differences = rng.normal(0.4, 1.0, size=n)
    checked = stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=2**n
    )
    assert sign_flip_p_value(differences.tolist()) == pytest.approx(checked.pvalue)


def test_sign_flips_with_ties_count_every_tie() -> None:
    # |sum| is 3 for all-plus and all-minus, 1 for the six others.
    assert sign_flip_p_value([1.0, 1.0, 1.0]) == 0.25
    assert sign_flip_p_value([0.1, 0.2, -0.3]) == 1.0
    assert sign_flip_p_value([0.0, 0.0]) == 1.0


def test_under_no_difference_the_exact_test_errs_as_often_as_it_says() -> None:
    # 2000 samples of 8: false calls at 5 % are binomial; 0.068 is over 3.6 standard deviations up.
    samples = np.random.default_rng(1).standard_cauchy(size=(2000, 8))
    false_calls = np.mean([sign_flip_p_value(row.tolist()) <= 0.05 for row in samples])
    assert 0.03 < false_calls < 0.068


def test_above_sixteen_seeds_the_paired_t_test_takes_over() -> None:
    rng = np.random.default_rng(2)
    first, second = rng.normal(size=(2, 20))
    found = paired_difference(dict(enumerate(first)), dict(enumerate(second)))
    assert found.test == "paired t"
    assert found.p_value == pytest.approx(stats.ttest_rel(first, second).pvalue)


def test_only_common_seeds_are_compared() -> None:
    found = paired_difference({0: 1.0, 1: 5.0, 2: 9.0}, {1: 4.0, 2: 7.0, 3: 0.0})
    assert found.summary is not None
    assert (found.summary.n, found.summary.mean) == (2, 1.5)
    assert found.test == "exact sign-flip"


def test_one_seed_has_no_interval_and_no_test() -> None:
    assert summarise([0.5]).half_width is None
    found = paired_difference({0: 1.0}, {0: 0.0})
    assert found.summary is not None
    assert found.summary.sd is None
    assert found.p_value is None
    assert not found.is_certain


def test_no_common_seed_is_no_difference() -> None:
    assert paired_difference({0: 1.0}, {1: 0.0}).summary is None


def test_a_constant_difference_over_many_seeds_has_p_zero_not_nan() -> None:
    first = dict.fromkeys(range(20), 1.0)
    same = paired_difference(first, first)
    apart = paired_difference(first, dict.fromkeys(range(20), 0.5))
    assert (same.p_value, apart.p_value) == (1.0, 0.0)


def test_a_gap_between_two_means_is_judged_as_welch_does() -> None:
    first, second = [1.0, 2.0, 4.0, 8.0, 3.0], [9.0, 7.0, 8.5, 9.5, 6.0, 12.0, 7.5]
    gap = fmean(first) - fmean(second)
    means = [(stdev(values), len(values)) for values in (first, second)]
    expected = stats.ttest_ind(first, second, equal_var=False).pvalue
    assert gap_p_value(gap, means) == pytest.approx(expected)
    assert gap_p_value(-gap, means) == pytest.approx(expected)


def test_a_gap_of_means_that_do_not_vary_cannot_be_judged() -> None:
    with pytest.raises(ValueError, match="at least one has to vary"):
        gap_p_value(1.0, [(0.0, 10)])
    with pytest.raises(ValueError, match="at least two values"):
        gap_p_value(1.0, [(1.0, 10), (1.0, 1)])


def test_holm_worked_example() -> None:
    # Sorted 0.005 0.01 0.03 0.04, times 4 3 2 1: 0.02 0.03 0.06 and max(0.06, 0.04).
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_five_seeds_are_never_certain_and_six_can_be() -> None:
    apart = {seed: 1.0 + seed / 100 for seed in range(6)}
    nothing = dict.fromkeys(range(6), 0.0)
    five = paired_difference({s: apart[s] for s in range(5)}, nothing)
    six = paired_difference(apart, nothing)
    assert five.p_value == 2 / 2**5
    assert not five.is_certain
    assert six.p_value == 2 / 2**6
    assert six.is_certain


def test_correction_skips_what_was_not_tested() -> None:
    tested = paired_difference(dict.fromkeys(range(6), 1.0), dict.fromkeys(range(6), 0.0))
    untested = paired_difference({0: 1.0}, {0: 0.0})
    first, second, third = corrected([tested, untested, tested])
    assert first.adjusted == pytest.approx(2 * 2 / 2**6)
    assert second.adjusted is None
    assert third.adjusted == first.adjusted
    assert not first.is_certain  # 0.0625: one of two, corrected


def test_nothing_and_nan_are_refused() -> None:
    with pytest.raises(ValueError, match="`values` has 0 entries"):
        summarise([])
    with pytest.raises(ValueError, match="not finite"):
        summarise([0.0, math.nan])
    with pytest.raises(ValueError, match="takes 1 to 16"):
        sign_flip_p_value([0.0] * 17)
