from collections.abc import Callable
from typing import Any

import pytest
import torch

from recollect.datasets import Examples
from recollect.errors import StreamError
from recollect.streams import (
    Stream,
    blurred_boundaries,
    blurred_classes,
    permuted_pixels,
    repeated_classes,
    split_classes,
)
from recollect.testing import check_stream

# Each statistical test below checks at most 30 numbers at z < 6.5: false alarms below 1e-8.
Z_LIMIT = 6.5
RUNS = 400

Change = Callable[..., Stream]
CHANGES: list[Change] = [
    lambda stream, seed=0: blurred_classes(stream, disjoint=0.5, blur=0.5, seed=seed),
    lambda stream, seed=0: repeated_classes(stream, chance=0.5, seed=seed),
]


@pytest.fixture
def sharp(numbered: Examples) -> Stream:
    """Three segments of two classes of 20 examples."""
    return split_classes(numbered, classes_per_segment=2, batch_size=7)


def counts(stream: Stream) -> list[list[int]]:
    """Count the classes of each segment."""
    labels = stream.examples.labels
    return [
        labels[stream.indices_of(k)].bincount(minlength=6).tolist()
        for k in range(len(stream.segments))
    ]


# --- both -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", CHANGES)
def test_every_example_still_comes_exactly_once_with_its_label(
    sharp: Stream, change: Change
) -> None:
    changed = change(sharp)
    given = [(inputs[:, 0], inputs[:, 1], labels) for inputs, labels in changed]
    indices, own, labels = (torch.cat(parts) for parts in zip(*given, strict=True))
    assert indices.sort().values.tolist() == list(range(120))
    assert torch.equal(own, labels)


@pytest.mark.parametrize("change", CHANGES)
def test_the_seed_decides_and_the_first_stream_stays_as_it_is(
    sharp: Stream, change: Change
) -> None:
    before = sharp.plan.order.clone()
    orders = [change(sharp, seed=seed).plan.order.tolist() for seed in (0, 0, 1, 2)]
    assert orders[0] == orders[1]
    assert len({tuple(order) for order in orders}) == 3
    assert torch.equal(sharp.plan.order, before)
    assert sharp.cursor == 0


@pytest.mark.parametrize("change", CHANGES)
def test_the_evaluator_still_knows_whose_class_is_whose(sharp: Stream, change: Change) -> None:
    assert change(sharp).segments == sharp.segments


@pytest.mark.parametrize("change", CHANGES)
def test_what_comes_out_is_a_stream(numbered: Examples, change: Change) -> None:
    check_stream(lambda: change(split_classes(numbered, classes_per_segment=2, batch_size=7)))


@pytest.mark.parametrize("change", CHANGES)
def test_a_stream_that_has_begun_is_refused(sharp: Stream, change: Change) -> None:
    next(sharp)
    with pytest.raises(StreamError, match="has given 7 examples already"):
        change(sharp)


@pytest.mark.parametrize("change", CHANGES)
def test_other_streams_than_of_classes_are_refused(sharp: Stream, change: Change) -> None:
    images = Examples(torch.zeros(8, 2, 2), torch.arange(8) % 2)
    with pytest.raises(ValueError, match="segment `permutation 1` changes its inputs"):
        change(permuted_pixels(images, num_segments=2))
    with pytest.raises(ValueError, match="blurred already"):
        change(blurred_boundaries(sharp, width=4))
    with pytest.raises(ValueError, match=r"class \d comes in segments `.*` and `.*` already"):
        change(blurred_classes(sharp, blur=0.5, disjoint=0.6, seed=1))


# --- blurred --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("disjoint", "num_disjoint"), [(0, 0), (0.5, 3), (0.34, 2), (1, 6)])
def test_a_share_of_the_classes_stays_whole(
    sharp: Stream, disjoint: float, num_disjoint: int
) -> None:
    # At full blur a class that is not disjoint stays whole with probability below 1e-9.
    for seed in range(10):
        found = counts(blurred_classes(sharp, disjoint=disjoint, blur=1.0, seed=seed))
        whole = [label for label in range(6) if found[label // 2][label] == 20]
        assert len(whole) == num_disjoint


def test_each_segment_has_as_many_disjoint_classes_and_chance_says_which(sharp: Stream) -> None:
    drawn = set()
    for seed in range(20):
        found = counts(blurred_classes(sharp, disjoint=0.5, blur=1.0, seed=seed))
        whole = tuple(label for label in range(6) if found[label // 2][label] == 20)
        assert [label // 2 for label in whole] == [0, 1, 2]
        drawn.add(whole)
    assert len(drawn) > 4  # of 8; 20 seeds that draw 4 or fewer: below 1e-4


def test_exactly_the_blurred_share_of_a_class_may_leave_and_segments_keep_their_size(
    sharp: Stream,
) -> None:
    for seed in range(10):
        blurred = blurred_classes(sharp, disjoint=0.0, blur=0.25, seed=seed)
        assert blurred.plan.segment_sizes == sharp.plan.segment_sizes
        assert [len(labels) for _, labels in blurred] == [
            len(labels) for _, labels in sharp.fresh()
        ]
        found = counts(blurred)
        assert all(found[label // 2][label] >= 15 for label in range(6))
        stayed = blurred.plan.order == sharp.plan.order
        assert int(stayed.sum()) >= 90  # 15 of each class have not moved


def test_what_moves_comes_back_to_its_own_segment_one_time_in_three(sharp: Stream) -> None:
    """So of a class's blurred fourth, 5 of 20, two thirds are elsewhere on average."""
    total = torch.zeros(3, 6)
    for seed in range(RUNS):
        total += torch.tensor(counts(blurred_classes(sharp, disjoint=0.0, blur=0.25, seed=seed)))
    share = (total - 15 * RUNS * torch.eye(3).repeat_interleave(2, 1)) / (5 * RUNS)
    # Drawn without replacement, which varies less than this: 30 places, 10 of each segment.
    z = (share - 1 / 3) / (1 / 3 * 2 / 3 / (5 * RUNS)) ** 0.5
    assert float(z.abs().max()) < Z_LIMIT


def test_nothing_blurred_is_the_sharp_stream(sharp: Stream) -> None:
    for same in (blurred_classes(sharp, disjoint=1.0), blurred_classes(sharp, blur=0.0)):
        assert torch.equal(same.plan.order, sharp.plan.order)


@pytest.mark.parametrize("settings", [{"blur": 1.5}, {"disjoint": -0.1}])
def test_a_share_out_of_range_is_refused(sharp: Stream, settings: dict[str, Any]) -> None:
    [(name, value)] = settings.items()
    with pytest.raises(ValueError, match=f"`{name}` is {value}; pass a share from 0 to 1"):
        blurred_classes(sharp, **settings)


# --- repeated -------------------------------------------------------------------------------------


def test_a_class_that_always_comes_again_is_dealt_out_evenly(sharp: Stream) -> None:
    assert counts(repeated_classes(sharp, chance=1.0)) == [
        [7, 7, 0, 0, 0, 0],
        [7, 7, 10, 10, 0, 0],
        [6, 6, 10, 10, 20, 20],
    ]


def test_a_class_that_never_comes_again_stays(sharp: Stream) -> None:
    found = counts(repeated_classes(sharp, chance=0.0))
    assert found == counts(sharp)


def test_a_class_comes_first_in_its_own_segment_and_again_with_its_chance(sharp: Stream) -> None:
    again = torch.zeros(3, 6)
    for seed in range(RUNS):
        found = torch.tensor(counts(repeated_classes(sharp, chance=0.3, seed=seed)))
        assert all(found[label // 2][label] > 0 for label in range(6))
        assert not any(found[k][label] for label in range(6) for k in range(label // 2))
        # Its segments have as many of it, but for the remainder.
        for label in range(6):
            dealt = found[:, label][found[:, label] > 0]
            assert int(dealt.max() - dealt.min()) <= 1
        again += found > 0
    later = torch.tensor([[k > label // 2 for label in range(6)] for k in range(3)])
    z = (again[later] / RUNS - 0.3) / (0.3 * 0.7 / RUNS) ** 0.5
    assert float(z.abs().max()) < Z_LIMIT


def test_within_a_segment_old_and_new_classes_are_mixed(sharp: Stream) -> None:
    last = repeated_classes(sharp, chance=1.0)
    labels = sharp.examples.labels[last.indices_of(2)]
    assert labels.tolist() != labels.sort().values.tolist()
    assert (labels[:26] < 4).any()
    assert (labels[26:] < 4).any()


def test_a_class_with_few_examples_comes_as_often_as_it_has_some() -> None:
    labels = torch.tensor([0, 1, 1, 1, 2, 2, 2])
    stream = split_classes(Examples(torch.arange(7), labels), classes_per_segment=1)
    again = repeated_classes(stream, chance=1.0)
    assert [labels.bincount(minlength=3).tolist() for _, labels in again] == [
        [1, 0, 0],
        [0, 2, 0],
        [0, 1, 3],
    ]


def test_a_chance_out_of_range_is_refused(sharp: Stream) -> None:
    with pytest.raises(ValueError, match="`chance` is 2; pass a share from 0 to 1"):
        repeated_classes(sharp, chance=2)
