"""How many seeds it takes to show a difference."""

import dataclasses

import numpy as np
import pytest
from scipy import stats
from studies.gains.seeds_needed import least_shown, power, seeds_needed, seeds_table
from tests.unit.reports.runs import read_runs

from recollect.experiments.records.record import Record

TEST = '{"evaluation":{"on":"test"},"optimizer":{"lr":0.05}}'


@pytest.mark.parametrize(("effect", "n"), [(0.2, 199), (0.5, 34), (0.8, 15)])
def test_the_textbooks_numbers_of_pairs(effect: float, n: int) -> None:
    """Cohen's small, medium and large effect, 80 % power, two-sided 5 %."""
    assert seeds_needed(effect, 1.0) == n
    assert seeds_needed(-3 * effect, 3.0) == n


def test_a_test_that_is_simulated_shows_it_as_often() -> None:
    drawn = np.random.default_rng(0).normal(0.9, 1.0, size=(4000, 10))
    found = stats.ttest_1samp(drawn, 0.0, axis=1)
    assert np.mean((found.pvalue < 0.05) & (found.statistic > 0)) == pytest.approx(
        power(0.9, 10), abs=0.02
    )


def test_a_difference_that_n_seeds_just_show_needs_n() -> None:
    assert seeds_needed(least_shown(30, 4.0) * 1.0001, 4.0) == 30
    assert seeds_needed(least_shown(30, 4.0) * 0.9999, 4.0) == 31


def test_no_difference_is_so_large_that_fewer_than_six_seeds_do() -> None:
    assert seeds_needed(50.0, 1.0) == 6


def runs(method: str, *right: int) -> list[Record]:
    """One run a seed with so many of 1000 right at the end, ten seconds long."""
    base = dataclasses.replace(read_runs()[0], spec=TEST, capacity=500, passes="joint")
    return [
        dataclasses.replace(
            base,
            method=method,
            spec_hash=method,
            seed=seed,
            cpu_seconds=10.0,
            segment_names=("only",),
            correct=((count,),),
            total=(1000,),
        )
        for seed, count in enumerate(right)
    ]


def test_a_row_has_the_spread_paired_and_not_and_what_it_means() -> None:
    er = runs("er", 700, 720, 740, 760, 780)
    er_p = runs("er-p", 710, 740, 750, 780, 790)  # 10, 20, 10, 20, 10 more
    (row,) = seeds_table([*er, *er_p], []).splitlines()[2:]
    entries = [entry.strip() for entry in row.split("|")[1:-1]]
    assert entries[:4] == ["MNIST-S", "its own", "ER-P minus ER", "5"]
    assert entries[4:6] == ["0.5", "4.5"]  # sqrt(0.3), hypot(sqrt(10), sqrt(10.3))
    assert entries[6] == "0.5"  # ten seeds show an effect of one standard deviation
    assert entries[9:] == ["+2.6", "6", "0.33"]


def test_too_few_seeds_have_no_row() -> None:
    four = [*runs("er", 700, 720, 740, 760), *runs("er-p", 710, 740, 750, 790)]
    assert len(seeds_table(four, []).splitlines()) == 2
