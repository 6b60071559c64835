"""Measures along the stream, worked by hand on four looks at three segments.

    seen      10    20    30    40
    segment 0  0.9   0.3   0.5   0.6
    segment 1   .    0.8   0.2   0.7
    segment 2   .     .    1.0   0.4

Averages are 0.9, 0.55, 1.7/3 and 1.7/3. Segment 0 is over from the second look on, and at its worst
there; segment 1 from the third.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.metrics import area_under_accuracy, minimum_accuracy, worst_case_accuracy

LOOKS = [[0.9], [0.3, 0.8], [0.5, 0.2, 1.0], [0.6, 0.7, 0.4]]
MEANS = [0.9, 0.55, 1.7 / 3, 1.7 / 3]
SHARES = st.floats(0, 1)


def test_the_area_under_evenly_spaced_looks_is_their_mean() -> None:
    assert area_under_accuracy([10, 20, 30, 40], MEANS) == pytest.approx(sum(MEANS) / 4)


def test_a_look_stands_for_the_stretch_before_it() -> None:
    assert area_under_accuracy([10, 20, 60], [0.6, 0.3, 0.9]) == pytest.approx(
        (10 * 0.6 + 10 * 0.3 + 40 * 0.9) / 60
    )


def test_who_learns_late_has_a_small_area_whatever_is_reached() -> None:
    moments = range(1, 11)
    late, early = [0.1] * 9 + [1.0], [0.1] + [1.0] * 9
    assert area_under_accuracy(moments, late) == pytest.approx(0.19)
    assert area_under_accuracy(moments, early) == pytest.approx(0.91)


@given(st.lists(SHARES, min_size=1), SHARES)
def test_the_area_of_a_constant_is_it_wherever_one_looks(gaps: list[float], share: float) -> None:
    moments, seen = [], 0
    for gap in gaps:
        seen += 1 + int(100 * gap)
        moments.append(seen)
    assert area_under_accuracy(moments, [share] * len(moments)) == pytest.approx(share)


def test_the_minimum_is_of_segments_that_are_over_at_their_worst_look() -> None:
    assert minimum_accuracy(LOOKS) == pytest.approx((0.3 + 0.2) / 2)


def test_a_drop_while_a_segment_is_learnt_is_no_drop() -> None:
    assert minimum_accuracy([[0.1], [0.9], [0.8, 1.0]]) == 0.8


def test_the_worst_case_takes_the_last_segment_as_it_is_at_the_end() -> None:
    assert worst_case_accuracy(LOOKS) == pytest.approx(0.4 / 3 + 2 / 3 * 0.25)


def test_with_one_segment_the_worst_case_is_its_accuracy() -> None:
    assert worst_case_accuracy([[0.2], [0.6]]) == 0.6


def test_a_drop_and_its_recovery_are_seen_only_by_who_looks_in_between() -> None:
    between = [[1.0], [0.0, 0.5], [0.9, 0.9]]
    assert minimum_accuracy(between) == 0.0
    assert minimum_accuracy([between[0], between[2]]) == 0.9


@given(st.data(), st.integers(2, 5), st.integers(1, 4))
def test_with_more_looks_the_minimum_is_never_higher(
    data: st.DataObject, num_segments: int, each: int
) -> None:
    sizes = [k for k in range(1, num_segments + 1) for _ in range(each)]
    looks = [data.draw(st.lists(SHARES, min_size=n, max_size=n)) for n in sizes]
    fewer = [look for place, look in enumerate(looks) if place % each == each - 1]
    assert minimum_accuracy(looks) <= minimum_accuracy(fewer) + 1e-12
    assert minimum_accuracy(looks) <= sum(looks[-1][:-1]) / (num_segments - 1) + 1e-12
    assert worst_case_accuracy(looks) <= sum(looks[-1]) / num_segments + 1e-12


@pytest.mark.parametrize(
    ("moments", "accuracies", "told"),
    [
        ([], [], "`moments` has 0 entries"),
        ([1, 2], [0.5], "`moments` has 2 entries and `accuracies` 1"),
        ([0, 2], [0.5, 0.5], "have to ascend from above 0"),
        ([2, 2], [0.5, 0.5], "have to ascend from above 0"),
    ],
)
def test_moments_that_make_no_area_are_refused(
    moments: list[int], accuracies: list[float], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        area_under_accuracy(moments, accuracies)


@pytest.mark.parametrize("measure", [minimum_accuracy, worst_case_accuracy])
@pytest.mark.parametrize(
    ("looks", "told"),
    [([], "has none with a segment"), ([[]], "has none"), ([[1.0, 1.0], [1.0]], "stays met")],
)
def test_looks_that_are_none_are_refused(
    measure: object, looks: list[list[float]], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        measure(looks)  # type: ignore[operator]


def test_nothing_is_over_in_one_segment() -> None:
    with pytest.raises(ValueError, match="has met 1 segment"):
        minimum_accuracy([[0.5], [0.6]])
