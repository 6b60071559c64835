"""A difference in words: its size, its interval, and how sure it is."""

import pytest

from recollect.reports.page.comparison import difference_sentence
from recollect.reports.statistics import PairedDifference, Summary


@pytest.mark.parametrize(
    ("n", "adjusted", "said"),
    [
        (30, 0.0000001, "30 seeds in pairs, p < 0.001 after Holm): a difference at the 5 % level."),
        (30, 0.0312, "30 seeds in pairs, p = 0.031 after Holm): a difference at the 5 % level."),
        (30, 0.4, "30 seeds in pairs, p = 0.400 after Holm): not certain yet."),
        (5, 0.0625, "5 seeds in pairs, too few for a test, which needs 6): not certain yet."),
    ],
)
def test_a_difference_is_said_with_how_sure_it_is(n: int, adjusted: float, said: str) -> None:
    summary = Summary(n, 0.03, 0.01, 0.015, 0.045)
    difference = PairedDifference(summary, adjusted, "paired t", adjusted)
    assert difference_sentence(difference) == f"+3.0 points (95 % interval +1.5 to +4.5, {said}"


def test_one_seed_says_that_it_says_nothing() -> None:
    alone = PairedDifference(Summary(1, 0.03, None, None, None), None, "none")
    assert "on one seed; nothing can be said" in difference_sentence(alone)
    assert "no common seed" in difference_sentence(PairedDifference(None, None, "none"))
