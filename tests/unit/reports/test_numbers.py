import pytest

from recollect.reports.numbers import certainty, percent, points, probability, seconds
from recollect.reports.statistics import corrected, paired_difference


def test_signs_are_typeset_and_zero_has_none() -> None:
    assert points(-0.034) == "\u22123.4"
    assert points(0.0004) == "0.0"
    assert percent(-0.0001) == "0.0"
    assert percent(0.98765, digits=2) == "98.77"


def test_tiny_p_values_are_bounded_not_zero() -> None:
    assert probability(0.0) == "< 0.001"
    assert probability(0.001) == "0.001"
    assert probability(1.0) == "1.000"


@pytest.mark.parametrize(
    ("num_seeds", "shown"), [(1, ""), (2, "n < 6"), (5, "n < 6"), (6, "0.031")]
)
def test_a_p_value_stands_where_it_could_have_been_small(num_seeds: int, shown: str) -> None:
    better, worse = dict.fromkeys(range(num_seeds), 1.0), dict.fromkeys(range(num_seeds), 0.0)
    (difference,) = corrected([paired_difference(better, worse)])
    assert certainty(difference) == shown
    assert difference.has_enough_seeds == difference.is_certain


@pytest.mark.parametrize(
    ("duration", "shown"), [(0.0012, "1.2 ms"), (119.96, "120.0 s"), (3601, "60 min 1 s")]
)
def test_durations_have_fitting_units(duration: float, shown: str) -> None:
    assert seconds(duration) == shown
