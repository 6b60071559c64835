"""The sentences below a table, worked by hand for numbers of every kind."""

from collections.abc import Sequence

import pytest

from recollect.reports.conclusion import conclude
from recollect.reports.statistics import paired_difference, summarise
from recollect.reports.summary import SummaryRow

ER = [0.80, 0.82, 0.81, 0.80, 0.82, 0.81, 0.80, 0.82]


def row(
    method: str, accuracies: Sequence[float], *, forgetting: float = 0.1, capacity: int = 500
) -> SummaryRow:
    by_seed, baseline = dict(enumerate(accuracies)), dict(enumerate(ER))
    return SummaryRow(
        benchmark="mnist-split",
        protocol="paper",
        method=method,
        capacity=capacity,
        accuracy=summarise(list(accuracies)),
        forgetting=summarise([forgetting]),
        difference=None if method == "er" else paired_difference(by_seed, baseline),
        baseline="er",
        baseline_capacity=500,
    )


def difference_sentence(accuracies: Sequence[float]) -> str:
    _, sentence, _ = conclude([row("er", ER), row("er-p", accuracies)])
    return sentence


def test_the_first_sentence_says_where_each_method_ends_and_the_last_what_it_forgets() -> None:
    first, _, _, last = conclude(
        [
            row("van", [0.19] * 8, forgetting=0.981, capacity=0),
            row("er", ER, forgetting=0.172),
            row("er-clip-mir", [0.87] * 8, forgetting=0.074),
        ]
    )
    assert first == (
        "VAN (no memory) ends with 19.0 % of the test answers right, ER (500 slots) with 81.0 % "
        "and ER-CLIP-MIR (500 slots) with 87.0 %."
    )
    assert last.endswith("98.1 with VAN, 17.2 with ER and 7.4 with ER-CLIP-MIR.")


@pytest.mark.parametrize(
    ("gains", "sentence"),
    [
        # All of 8 signs agree: p = 2 / 2^8 = 0.0078.
        (
            [0.05] * 8,
            "ER-P is 5.0 points above ER: more than chance explains (8 seeds, p = 0.008).",
        ),
        (
            [-0.05] * 8,
            "ER-P is 5.0 points below ER: more than chance explains (8 seeds, p = 0.008).",
        ),
        # Half go up as far as the others go down: every pattern of signs is as far out.
        ([0.01, -0.01] * 4, "ER-P is level with ER: chance may explain that (8 seeds, p = 1.000)."),
        # 0.04 in all: 5 or more, or 3 or fewer, of 8 signs are up in 186 of 256 patterns.
        (
            [0.02] * 5 + [-0.02] * 3,
            "ER-P is 0.5 points above ER: chance may explain that (8 seeds, p = 0.727).",
        ),
        (
            [0.05] * 5,
            "ER-P is 5.0 points above ER: 5 seeds cannot tell that from chance, 6 or more can.",
        ),
        ([-0.04], "ER-P is 4.0 points below ER: one seed cannot tell that from chance."),
    ],
    ids=["above", "below", "level", "chance", "few seeds", "one seed"],
)
def test_a_difference_is_said_as_the_numbers_have_it(gains: list[float], sentence: str) -> None:
    ends = [accuracy + gain for accuracy, gain in zip(ER, gains, strict=False)]
    assert difference_sentence(ends) == sentence


def test_one_method_alone_is_compared_with_nothing() -> None:
    first, last = conclude([row("er", ER)])
    assert first == "ER (500 slots) ends with 81.0 % of the test answers right."
    assert last.endswith(": 10.0 with ER.")


def test_no_row_says_nothing() -> None:
    assert conclude([]) == []
