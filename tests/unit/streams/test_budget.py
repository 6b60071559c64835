from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recollect.datasets import Examples
from recollect.errors import StreamError
from recollect.streams import Stream, blurred_boundaries, split_classes, within_budget
from recollect.testing import check_stream


@pytest.fixture
def waiting(numbered: Examples) -> Stream:
    """Three segments of six batches: five of 7 and one of 5."""
    return split_classes(numbered, classes_per_segment=2, batch_size=7)


def _batches(stream: Stream) -> list[list[int]]:
    return [inputs[:, 0].tolist() for inputs, _ in stream.fresh()]


@pytest.mark.parametrize(
    ("cost", "budget", "given_batches"),
    [
        (1.0, 1.0, range(18)),
        (0.4, 1.0, range(18)),  # faster than the stream, which gives no more than it has
        (2.0, 1.0, range(0, 18, 2)),
        (3.0, 1.0, range(0, 18, 3)),
        (3.0, 3.0, range(18)),
        (1.0, 0.25, range(0, 18, 4)),
        # floor(k / 1.5): 0 0 1 2 2 3 4 4 5 6 6 7 8 8 9 10 10 11
        (1.5, 1.0, [0, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17]),
        (1000.0, 1.0, [0]),
    ],
)
def test_the_batches_that_arrive_while_a_step_is_made_are_left_out(
    waiting: Stream, cost: float, budget: float, given_batches: list[int]
) -> None:
    left = within_budget(waiting, cost=cost, budget=budget)
    whole = _batches(waiting)
    assert _batches(left) == [whole[k] for k in given_batches]


@given(st.integers(1, 60), st.floats(0.01, 50), st.floats(0.01, 50), st.integers(1, 5))
def test_exactly_as_many_batches_are_given_as_there_is_time_for(
    num_batches: int, cost: float, budget: float, batch_size: int
) -> None:
    data = Examples(
        torch.arange(num_batches * batch_size),
        torch.zeros(1).long().expand(num_batches * batch_size),
    )
    stream = split_classes(data, classes_per_segment=1, batch_size=batch_size)
    ratio = min(Fraction(1), Fraction(str(budget)) / Fraction(str(cost)))
    left = within_budget(stream, cost=cost, budget=budget)
    assert len(left) == 1 + (num_batches - 1) * ratio // 1


def test_shares_are_those_of_the_digits_and_not_of_their_binary_fractions(
    numbered: Examples,
) -> None:
    stream = split_classes(numbered, classes_per_segment=6, batch_size=1)
    # 21 batches at a cost of 2.1 have time for 1 + 20 / 2.1 = 10.5; at the 22nd it is 11 exactly.
    assert [len(within_budget(_first(stream, n), cost=2.1)) for n in (21, 22)] == [10, 11]
    assert len(within_budget(_first(stream, 64), cost=0.7, budget=0.1)) == 10  # 1 + 63 / 7


def _first(stream: Stream, count: int) -> Stream:
    data = stream.examples.take(torch.arange(count))
    return split_classes(data, classes_per_segment=6, batch_size=1)


def test_batches_are_left_out_whole_and_segments_keep_their_names(waiting: Stream) -> None:
    left = within_budget(waiting, cost=4.0)
    assert left.segments == waiting.segments
    # Batches 0, 4 of the first segment, 8 of the second, 12 and 16 of the third.
    assert [len(labels) for _, labels in left.fresh()] == [7, 7, 7, 7, 7]
    assert left.boundaries == (2, 3, 5)


def test_a_segment_may_be_missed(waiting: Stream) -> None:
    left = within_budget(waiting, cost=13.0)
    assert [len(left.indices_of(k)) for k in range(3)] == [7, 0, 7]
    assert left.boundaries == (1, 1, 2)


def test_streams_without_boundaries_do_not_wait_either(waiting: Stream) -> None:
    blurred = blurred_boundaries(waiting, width="iid")
    whole = _batches(blurred)
    assert _batches(within_budget(blurred, cost=2.5)) == [
        whole[k] for k in (0, 3, 5, 8, 10, 13, 15)
    ]


def test_what_is_left_is_a_stream(numbered: Examples) -> None:
    check_stream(
        lambda: within_budget(
            split_classes(numbered, classes_per_segment=2, batch_size=7), cost=2.3
        )
    )


@pytest.mark.parametrize("value", [0, -1.0, float("inf"), float("nan")])
@pytest.mark.parametrize("name", ["cost", "budget"])
def test_a_cost_or_budget_that_is_none_is_refused(waiting: Stream, name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"`{name}` is .*; pass a number above 0"):
        within_budget(waiting, **{"cost": 1.0, name: value})


def test_a_stream_that_has_begun_is_refused(waiting: Stream) -> None:
    next(waiting)
    with pytest.raises(StreamError, match="has given 7 examples already"):
        within_budget(waiting, cost=2.0)
