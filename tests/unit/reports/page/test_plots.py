import re

import pytest

from recollect.reports.page.plots import Axes, Line, line_chart, round_ticks, slug, stacked_bars


@pytest.mark.parametrize("top", [0.003, 0.9, 1.0, 7.3, 42, 99.9, 500, 12345])
def test_ticks_are_round_few_and_within(top: float) -> None:
    ticks = round_ticks(top)
    assert ticks[0] == 0
    assert 2 <= len(ticks) <= 6
    assert all(0 <= tick <= top * 1.001 for tick in ticks)
    step = f"{ticks[1]:.6e}"
    assert re.match(r"(1|2|2\.5|5)0*e|(1|2|5)\.0+e|2\.50+e", step)


def test_points_stand_where_their_numbers_say() -> None:
    line = Line("ER", "er", (0.0, 0.5), (), (), ("0", "50"))
    drawn = line_chart([line], Axes((50, 100), 1.0, "t", percent=True))
    assert 'points="500.0,1000.0 1000.0,500.0"' in drawn
    assert 'class="band"' not in drawn


def test_bars_fill_the_time_since_the_moment_before() -> None:
    drawn = stacked_bars(["a", "b"], [(1.0, 0.0), (1.0, 3.0)], Axes((50, 100), 4.0, "t"), ["", ""])
    assert drawn.count("<rect") == 3
    assert "&quot;at&quot;:[25.0,75.0]" in drawn  # the middle of each bar is what one points at
    assert 'y="0.0"' in drawn  # 1 + 3 of 4 reaches the top


def test_slugs_are_safe_class_names() -> None:
    assert slug('er-p c"><') == "er-p-c---"
