from typing import Any

import pytest
import torch

from recollect.datasets import Examples
from recollect.streams import Stream, random_groups, split_classes


def _labels(stream: Stream) -> list[list[int]]:
    return [labels.tolist() for _, labels in stream.fresh()]


def _arrivals(stream: Stream) -> list[int]:
    return [int(index) for inputs, _ in stream.fresh() for index in inputs[:, 0]]


def test_each_segment_holds_its_classes_and_all_of_them(numbered: Examples) -> None:
    stream = split_classes(numbered, classes_per_segment=2, batch_size=40)
    assert [sorted(set(labels)) for labels in _labels(stream)] == [[0, 1], [2, 3], [4, 5]]
    assert [segment.classes for segment in stream.segments] == [(0, 1), (2, 3), (4, 5)]


def test_no_class_is_lost_whatever_the_labels() -> None:
    # The lineage finds class borders by argmax over sorted labels and loses a class on ties.
    labels = torch.tensor([9, 9, 0, 0, 4, 9, 4, 0, 4, 7])
    stream = split_classes(Examples(torch.arange(10), labels), classes_per_segment=1, batch_size=9)
    assert _labels(stream) == [[0] * 3, [4] * 3, [7], [9] * 3]


def test_exactly_the_asked_number_is_streamed(numbered: Examples) -> None:
    stream = split_classes(numbered, classes_per_segment=2, examples_per_segment=30)
    assert [len(stream.indices_of(k)) for k in range(3)] == [30, 30, 30]
    assert len(set(_arrivals(stream))) == 90


def test_each_seed_draws_a_fresh_subset_and_order(numbered: Examples) -> None:
    streams = [
        split_classes(numbered, classes_per_segment=2, examples_per_segment=20, seed=seed)
        for seed in range(3)
    ]
    assert len({frozenset(_arrivals(stream)) for stream in streams}) == 3


def test_the_same_seed_gives_the_same_stream(numbered: Examples) -> None:
    streams = [split_classes(numbered, classes_per_segment=3, seed=4) for _ in range(2)]
    assert _arrivals(streams[0]) == _arrivals(streams[1])
    assert _arrivals(streams[0]) != sorted(_arrivals(streams[0]))


def test_the_batch_size_does_not_change_the_order(numbered: Examples) -> None:
    streams = [split_classes(numbered, classes_per_segment=2, batch_size=b) for b in (1, 10, 64)]
    assert _arrivals(streams[0]) == _arrivals(streams[1]) == _arrivals(streams[2])


def test_the_order_of_classes_does_not_change_what_a_segment_holds(numbered: Examples) -> None:
    usual = split_classes(numbered, classes_per_segment=2, examples_per_segment=20)
    turned = split_classes(
        numbered, classes_per_segment=2, examples_per_segment=20, class_order=[4, 5, 2, 3, 0, 1]
    )
    assert torch.equal(usual.indices_of(0), turned.indices_of(2))


def test_subsets_are_uniform_over_the_pool(numbered: Examples) -> None:
    # 2000 seeds, each example expected in half of them; false alarm rate below 1e-6 (z = 6.4 over
    # 40 examples).
    counts = torch.zeros(120)
    for seed in range(2000):
        stream = split_classes(numbered, groups=[(0, 1)], examples_per_segment=20, seed=seed)
        counts[stream.indices_of(0)] += 1
    mine = torch.isin(numbered.labels, torch.tensor([0, 1]))
    assert counts[~mine].sum() == 0
    assert float((counts[mine] - 1000).abs().max()) / (2000 * 0.25) ** 0.5 < 6.4


def test_a_shuffled_class_order_depends_on_the_seed_alone(numbered: Examples) -> None:
    def orders(examples_per_segment: int) -> list[list[tuple[int, ...]]]:
        return [
            [
                segment.classes
                for segment in split_classes(
                    numbered,
                    classes_per_segment=1,
                    class_order="shuffled",
                    examples_per_segment=examples_per_segment,
                    seed=seed,
                ).segments
            ]
            for seed in range(5)
        ]

    assert orders(5) == orders(20)
    assert len({tuple(order) for order in orders(5)}) > 1
    assert all(sorted(order) == [(k,) for k in range(6)] for order in orders(5))


def test_only_the_examples_named_may_arrive(numbered: Examples) -> None:
    allowed = torch.arange(0, 120, 2)
    stream = split_classes(numbered, groups=[(0, 2), (4,)], among=allowed)
    assert set(_arrivals(stream)) <= set(allowed.tolist())


def test_groups_may_differ_in_size(numbered: Examples) -> None:
    stream = split_classes(numbered, groups=[(5,), (0, 1, 2)], batch_size=100)
    assert [sorted(set(labels)) for labels in _labels(stream)] == [[5], [0, 1, 2]]
    assert [segment.name for segment in stream.segments] == ["classes 5", "classes 0, 1, 2"]


def test_more_examples_than_there_are_is_refused(numbered: Examples) -> None:
    with pytest.raises(ValueError, match=r"`examples_per_segment` is 41.*`classes 0, 1` has 40"):
        split_classes(numbered, classes_per_segment=2, examples_per_segment=41)


def test_a_size_that_does_not_divide_the_classes_is_refused(numbered: Examples) -> None:
    with pytest.raises(ValueError, match="`classes_per_segment` is 4, which does not divide the 6"):
        split_classes(numbered, classes_per_segment=4)


def test_groups_and_a_size_together_are_refused(numbered: Examples) -> None:
    with pytest.raises(ValueError, match="pass one"):
        split_classes(numbered, classes_per_segment=2, groups=[(0, 1)])


def test_a_class_in_two_groups_is_refused(numbered: Examples) -> None:
    with pytest.raises(ValueError, match=r"`groups` names classes \[1\] more than once"):
        split_classes(numbered, groups=[(0, 1), (1, 2)])


def test_a_class_without_examples_is_refused(numbered: Examples) -> None:
    with pytest.raises(ValueError, match=r"`groups` names classes \[7\], which have no examples"):
        split_classes(numbered, groups=[(0, 7)])


def test_a_class_order_that_leaves_one_out_is_refused(numbered: Examples) -> None:
    with pytest.raises(ValueError, match="name each once"):
        split_classes(numbered, classes_per_segment=1, class_order=[0, 1, 2, 3, 4])


def test_an_unknown_class_order_is_refused(numbered: Examples) -> None:
    random_order: Any = "random"
    with pytest.raises(ValueError, match="`class_order` is 'random'"):
        split_classes(numbered, classes_per_segment=2, class_order=random_order)


def test_each_group_may_have_a_number_of_examples_of_its_own(numbered: Examples) -> None:
    stream = split_classes(
        numbered, groups=[(5,), (0, 1)], examples_per_segment=[3, 11], batch_size=100
    )
    assert [len(labels) for labels in _labels(stream)] == [3, 11]
    with pytest.raises(ValueError, match="has 1 entries for 2 groups"):
        split_classes(numbered, groups=[(5,), (0, 1)], examples_per_segment=[3])


def test_random_groups_hold_every_class_once_and_none_is_empty() -> None:
    labels = torch.arange(40) % 8
    for seed in range(20):
        groups = random_groups(labels, num_groups=3, seed=seed)
        assert len(groups) == 3
        assert all(groups)
        assert sorted(label for group in groups for label in group) == list(range(8))


def test_every_way_to_cut_the_classes_is_as_likely() -> None:
    # Four classes in three groups: one group of two, at each of three places, of six pairs: 18
    # ways to cut. At z < 6.5 false alarms are below 1e-8.
    runs, labels = 3000, torch.arange(4)
    found: dict[object, int] = {}
    for seed in range(runs):
        groups = tuple(map(tuple, random_groups(labels, num_groups=3, seed=seed)))
        pair = next(place for place, group in enumerate(groups) if len(group) == 2)
        found[pair, groups[pair]] = found.get((pair, groups[pair]), 0) + 1
    assert len(found) == 18
    spread = (runs * 1 / 18 * 17 / 18) ** 0.5
    assert max(abs(count - runs / 18) for count in found.values()) / spread < 6.5


@pytest.mark.parametrize("num_groups", [0, 5])
def test_as_many_random_groups_as_classes_at_most(num_groups: int) -> None:
    with pytest.raises(ValueError, match=f"`num_groups` is {num_groups}, but there are 4 classes"):
        random_groups(torch.arange(4), num_groups=num_groups, seed=0)
