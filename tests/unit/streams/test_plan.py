import pytest
import torch

from recollect.streams import Plan


def test_batches_by_segment_never_straddle_two() -> None:
    plan = Plan.by_segment([torch.arange(5), torch.arange(4), torch.arange(3)], batch_size=2)
    assert plan.batch_ends() == [2, 4, 5, 7, 9, 11, 12]
    assert plan.segment_sizes == [5, 4, 3]


def test_batches_straight_through_are_full_but_the_last() -> None:
    plan = Plan(torch.arange(7), torch.zeros(7, dtype=torch.int64), 1, 3, "straight through")
    assert plan.batch_ends() == [3, 6, 7]


def test_a_batch_may_be_larger_than_the_stream() -> None:
    assert Plan.by_segment([torch.arange(5)], batch_size=100).batch_ends() == [5]


def test_an_empty_segment_makes_no_batch() -> None:
    nothing = torch.zeros(0, dtype=torch.int64)
    plan = Plan.by_segment([nothing, torch.arange(2), nothing], batch_size=2)
    assert plan.batch_ends() == [2]
    assert plan.segment_sizes == [0, 2, 0]


def test_short_batches_can_be_left_out() -> None:
    plan = Plan.by_segment([torch.arange(5), torch.arange(5, 9)], batch_size=2)
    whole = plan.without_short_batches()
    assert whole.order.tolist() == [0, 1, 2, 3, 5, 6, 7, 8]
    assert whole.batch_ends() == [2, 4, 6, 8]


def test_a_batch_size_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="`batch_size` is 0"):
        Plan.by_segment([torch.arange(5)], batch_size=0)


def test_a_stream_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one example"):
        Plan.by_segment([torch.zeros(0, dtype=torch.int64)], batch_size=1)
