"""Bars on the page: every mark stands where its number is, single seeds far from the rest too."""

import re
from collections.abc import Callable, Iterator

import pytest
from tests.unit.reports.test_cells import record_like

from recollect.experiments.records.record import Record
from recollect.reports.cells import final_accuracy, final_forgetting, group_cells
from recollect.reports.page.bar_charts import bar_charts
from recollect.reports.page.parts import Bar, bars, bounds
from recollect.reports.page.speed import speed


def drawn_dots(page: str) -> Iterator[list[list[float]]]:
    """Read the dots of every bar of every chart back as values, as page.js does."""
    for low, high, rows in re.findall(
        r'class="bars" data-low="([^"]+)" data-high="([^"]+)"><ul>(.*?)</ul>', page
    ):
        start, width = float(low), float(high) - float(low)
        yield [
            [start + width * float(at) / 100 for at in re.findall(r'<u style="left:(.*?)%', row)]
            for row in rows.split("</li>")[:-1]
        ]


@pytest.fixture
def spread(runs: list[Record]) -> list[Record]:
    """ER and ER-P, both with one seed that went far worse and far slower than their five others."""
    own = [r for r in runs if r.benchmark == "mnist-split" and r.method in ("er", "er-p")]
    return [
        record_like(
            record,
            correct=(*record.correct[:-1], tuple(c // 3 for c in record.correct[-1])),
            learn_seconds=record.learn_seconds / 9,
        )
        if (record.method, record.seed) in (("er", 2), ("er-p", 4))
        else record
        for record in own
    ]


@pytest.mark.parametrize(("chart", "number"), [(0, final_accuracy), (1, final_forgetting)])
def test_single_seeds_are_drawn_at_their_values(
    spread: list[Record], chart: int, number: Callable[[Record], float]
) -> None:
    cells = group_cells(spread)
    drawn = list(drawn_dots(bar_charts(cells)))[chart]
    for cell, dots in zip(cells, drawn, strict=True):
        values = [100 * value for value in cell.by_seed(number).values()]
        assert dots == pytest.approx(values, abs=0.02)


def test_single_differences_are_drawn_at_their_values(spread: list[Record]) -> None:
    er, er_p = group_cells(spread)
    (dots,) = list(drawn_dots(bar_charts([er, er_p])))[2]  # ER-P minus ER, accuracy
    ours, theirs = er_p.by_seed(final_accuracy), er.by_seed(final_accuracy)
    assert dots == pytest.approx([100 * (ours[seed] - theirs[seed]) for seed in ours], abs=0.03)


def test_single_speeds_are_drawn_at_their_values(spread: list[Record]) -> None:
    cells = group_cells(spread)
    drawn = next(drawn_dots(speed(cells)))
    for cell, dots in zip(cells, drawn, strict=True):
        values = [record.num_examples / record.learn_seconds for record in cell.records]
        assert dots == pytest.approx(values, abs=1e-4 * max(values))  # 0.01 % of the width


def test_an_interval_of_a_share_ends_where_shares_end(runs: list[Record]) -> None:
    """Two seeds, 50 % and 99 %: the t interval is -237 to 386 %, the chart is 0 to 100 %."""
    first, second = (
        r for r in runs if (r.benchmark, r.method) == ("mnist-split", "er") and r.seed < 2
    )
    far = [
        record_like(record, correct=((right,) * 5,) * 5, total=(100,) * 5)
        for record, right in ((first, 50), (second, 99))
    ]
    page = bar_charts(group_cells(far))
    assert '<s style="left:0.00%;width:100.00%"></s>' in page


def test_a_scale_that_leaves_a_mark_out_is_refused() -> None:
    bar = Bar("ER", "er", 50.0, 40.0, 60.0, (30.0, 90.0), "50", "ER: 50")
    assert bounds([bar]) == (30.0, 90.0)
    assert "left:100.00%" in bars([bar], low=0.0, high=90.0, ticks=[0.0], unit="%")
    with pytest.raises(ValueError, match=r"`low` to `high` is 0\.0 to 60\.0.*30\.0 to 90\.0"):
        bars([bar], low=0.0, high=60.0, ticks=[0.0], unit="%")
