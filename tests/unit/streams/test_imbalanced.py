from typing import Any

import pytest
import torch

from recollect.datasets import Examples
from recollect.errors import StreamError
from recollect.streams import Stream, blurred_boundaries, imbalanced, long_tailed, split_classes


@pytest.fixture
def balanced(numbered: Examples) -> Stream:
    return split_classes(numbered, classes_per_segment=2, batch_size=10)


def _counts(stream: Stream) -> list[int]:
    counts: list[int] = torch.cat([labels for _, labels in stream.fresh()]).bincount().tolist()
    return counts


def test_each_class_keeps_exactly_its_share(balanced: Stream) -> None:
    assert _counts(imbalanced(balanced, ratios={0: 0.5, 3: 0.26})) == [10, 20, 20, 5, 20, 20]


def test_a_factor_makes_each_class_rarer_than_the_one_before(balanced: Stream) -> None:
    assert _counts(imbalanced(balanced, factor=0.5)) == [20, 10, 5, 2, 1, 1]


def test_the_rarest_class_keeps_one_example(balanced: Stream) -> None:
    assert _counts(imbalanced(balanced, ratios={0: 0.001})) == [1, 20, 20, 20, 20, 20]


def test_kept_examples_arrive_in_the_order_they_had(balanced: Stream) -> None:
    rarer = imbalanced(balanced, factor=0.7)
    place = {index: place for place, index in enumerate(balanced.plan.order.tolist())}
    places = [place[index] for index in rarer.plan.order.tolist()]
    assert places == sorted(places)
    assert rarer.num_examples == len(places) < balanced.num_examples


def test_each_seed_keeps_other_examples(balanced: Stream) -> None:
    kept = {
        frozenset(imbalanced(balanced, factor=0.5, seed=seed).plan.order.tolist())
        for seed in range(3)
    }
    assert len(kept) == 3


def test_blurred_streams_can_be_thinned_too(balanced: Stream) -> None:
    thinned = imbalanced(blurred_boundaries(balanced, width="iid"), ratios={1: 0.25})
    assert _counts(thinned) == [20, 5, 20, 20, 20, 20]
    assert [len(labels) for _, labels in thinned] == [10] * 10 + [5]


@pytest.mark.parametrize("arguments", [{}, {"ratios": {0: 0.5}, "factor": 0.5}])
def test_exactly_one_of_ratios_and_factor_is_needed(
    balanced: Stream, arguments: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match="pass one of the two"):
        imbalanced(balanced, **arguments)


@pytest.mark.parametrize("factor", [0, -0.5, 1.5])
def test_a_factor_out_of_range_is_refused(balanced: Stream, factor: float) -> None:
    with pytest.raises(ValueError, match=f"`factor` is {factor}"):
        imbalanced(balanced, factor=factor)


def test_a_share_out_of_range_is_refused(balanced: Stream) -> None:
    with pytest.raises(ValueError, match="gives class 2 the share 0"):
        imbalanced(balanced, ratios={2: 0})


def test_a_class_that_does_not_occur_is_refused(balanced: Stream) -> None:
    with pytest.raises(ValueError, match="`ratios` names class 6"):
        imbalanced(balanced, ratios={6: 0.5})


def test_a_stream_that_has_begun_is_refused(balanced: Stream) -> None:
    next(balanced)
    with pytest.raises(StreamError, match="has given 10 examples already"):
        imbalanced(balanced, factor=0.5)


def test_a_long_tail_falls_from_all_to_the_rarest_share_by_equal_factors(
    numbered: Examples,
) -> None:
    one = split_classes(numbered, classes_per_segment=2, batch_size=10)
    # 20 times 0.1^(k/5): 20, 12.6, 8.0, 5.0, 3.2, 2
    for seed in range(5):
        assert sorted(_counts(long_tailed(one, rarest=0.1, seed=seed))) == [2, 3, 5, 8, 13, 20]


def test_chance_says_which_classes_are_rare(balanced: Stream) -> None:
    orders = {tuple(_counts(long_tailed(balanced, rarest=0.1, seed=seed))) for seed in range(5)}
    assert len(orders) == 5
    assert _counts(long_tailed(balanced, rarest=0.1, seed=3)) in [list(order) for order in orders]


def test_a_tail_that_is_no_shorter_keeps_all(balanced: Stream) -> None:
    assert torch.equal(long_tailed(balanced, rarest=1.0).plan.order, balanced.plan.order)


@pytest.mark.parametrize("rarest", [0, -0.1, 1.5])
def test_a_rarest_share_out_of_range_is_refused(balanced: Stream, rarest: float) -> None:
    with pytest.raises(ValueError, match=f"`rarest` is {rarest}; pass a share above 0"):
        long_tailed(balanced, rarest=rarest)
