import json

import numpy as np
import pytest
import torch

from recollect.errors import CheckpointError
from recollect.learner.label_map import LabelMap


def test_classes_are_numbered_in_the_order_they_come() -> None:
    classes = LabelMap()
    assert classes.encode(["b", "a", "b"]).tolist() == [0, 1, 0]
    assert classes.encode(["c", "a"]).tolist() == [2, 1]
    assert classes.labels == ["b", "a", "c"]


def test_numbers_in_arrays_and_tensors_are_the_numbers_they_hold() -> None:
    classes = LabelMap([1000, 7])
    for given in (np.array([7, 1000]), torch.tensor([7, 1000]), [np.int64(7), torch.tensor(1000)]):
        assert classes.encode(given).tolist() == [1, 0]


def test_logits_and_numbers_are_given_their_names() -> None:
    classes = LabelMap(["a", "b"])
    assert classes.decode(torch.tensor([[0.0, 1.0, 9.0], [1.0, 0.0, 9.0]])) == ["b", "a"]
    assert classes.decode(torch.tensor([0, 1])) == ["a", "b"]


def test_adding_can_be_undone() -> None:
    classes = LabelMap(["a"])
    undo = classes.way_back()
    classes.add(["b", "c"])
    undo()
    assert classes.labels == ["a"]


def test_all_kinds_of_names_come_back_from_the_state() -> None:
    names = ["a", 3, 2.5, None, b"\x00\xff", ("x", 1, (b"y",)), ""]
    saved = json.loads(json.dumps(LabelMap(names).state()))
    again = LabelMap()
    again.take(LabelMap.numbers_in(saved))
    assert again.labels == names


@pytest.mark.parametrize("name", [object(), float("nan"), frozenset({1}), (1, object())])
def test_a_name_that_cannot_be_saved_is_refused(name: object) -> None:
    classes = LabelMap(["a"])
    with pytest.raises(TypeError, match="which a checkpoint cannot keep"):
        classes.encode(["b", name])
    assert classes.labels == ["a"]


def test_a_name_that_cannot_be_looked_up_is_refused() -> None:
    with pytest.raises(TypeError, match=r"`labels` holds \['a'\], which cannot be looked up"):
        LabelMap().encode([["a"]])
    with pytest.raises(TypeError, match="cannot be looked up"):
        LabelMap().encode([("a", ["b"])])


@pytest.mark.parametrize("state", [5, None, [{"tuple": 3}], [[1]], [{}], ["a", "a"], [{"x": "y"}]])
def test_a_damaged_state_is_refused(state: object) -> None:
    with pytest.raises(CheckpointError, match="the label map is damaged"):
        LabelMap.numbers_in(state)
