from collections import OrderedDict
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from recollect import nested


class Pair(NamedTuple):
    left: Tensor
    right: Tensor


ONE, TWO, THREE = torch.tensor([1.0]), torch.tensor([2]), torch.tensor([3], dtype=torch.uint8)


def same(first: object, second: object) -> bool:
    """Whether structures and tensors agree, tensor by tensor."""
    pairs = zip(nested.leaves(first), nested.leaves(second), strict=True)
    alike = nested.skeleton(first) == nested.skeleton(second)
    return alike and all(a.dtype == b.dtype and torch.equal(a, b) for a, b in pairs)


NESTINGS = [
    ONE,
    (ONE, TWO),
    [ONE, TWO],
    {"a": ONE, "b": (TWO, [THREE])},
    (ONE, {"x": TWO}, [THREE, ONE]),
]


def test_leaves_come_in_insertion_order() -> None:
    leaves = nested.leaves({"b": ONE, "a": (TWO, [THREE])})
    assert [leaf.item() for leaf in leaves] == [1.0, 2, 3]


@pytest.mark.parametrize("inputs", ["text", 3, None, (ONE, 3.0), {"a": None}])
def test_anything_but_tensors_is_refused(inputs: object) -> None:
    with pytest.raises(
        TypeError, match=r"`inputs` holds a (str|int|NoneType|float); pass a tensor"
    ):
        nested.leaves(inputs)


@pytest.mark.parametrize("inputs", NESTINGS)
def test_replacing_every_leaf_by_itself_gives_the_same_nesting(inputs: object) -> None:
    assert same(nested.replace_leaves(inputs, nested.leaves(inputs)), inputs)


@pytest.mark.parametrize("inputs", NESTINGS)
def test_a_skeleton_and_the_leaves_give_the_nesting_back(inputs: object) -> None:
    rebuilt = nested.from_skeleton(nested.skeleton(inputs), nested.leaves(inputs))
    assert same(rebuilt, inputs)


def test_structures_that_differ_have_different_skeletons() -> None:
    different = [*NESTINGS, {"a": ONE, "c": (TWO, [THREE])}, (ONE, TWO, THREE)]
    skeletons = [str(nested.skeleton(inputs)) for inputs in different]
    assert len(set(skeletons)) == len(different)


def test_map_reaches_every_leaf() -> None:
    doubled = nested.map_leaves(lambda leaf: 2 * leaf, {"a": ONE, "b": (TWO, [THREE])})
    assert [leaf.item() for leaf in nested.leaves(doubled)] == [2.0, 4, 6]


def test_concat_puts_the_examples_of_the_second_behind_those_of_the_first() -> None:
    joined = nested.concat({"a": ONE, "b": TWO}, {"a": 5 * ONE, "b": 5 * TWO})
    assert isinstance(joined, dict)
    assert {name: leaf.tolist() for name, leaf in joined.items()} == {"a": [1, 5], "b": [2, 10]}


def test_concat_of_two_tensors_is_one_tensor() -> None:
    joined = nested.concat(ONE, ONE)
    assert isinstance(joined, Tensor)
    assert joined.tolist() == [1.0, 1.0]


def test_concat_refuses_another_number_of_tensors() -> None:
    with pytest.raises(ValueError, match="shorter"):
        nested.concat((ONE, TWO), (ONE,))


def test_a_named_tuple_is_treated_as_a_tuple() -> None:
    mapped = nested.map_leaves(lambda leaf: leaf + 1, Pair(ONE, TWO))
    assert same(mapped, (ONE + 1, TWO + 1))


def test_an_ordered_dict_is_treated_as_a_dict() -> None:
    mapped = nested.map_leaves(lambda leaf: leaf + 1, OrderedDict(a=ONE))
    assert same(mapped, {"a": ONE + 1})
