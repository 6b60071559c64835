import pytest
import torch

from recollect import nested
from recollect.ragged import Ragged, pad


def test_padding_puts_each_example_at_the_start_of_its_row() -> None:
    batch = Ragged([torch.ones(2, 1), torch.full((1, 3), 2.0)])
    expected = [[[1, 0, 0], [1, 0, 0]], [[2, 2, 2], [0, 0, 0]]]
    assert pad(batch).tolist() == expected


def test_what_cannot_be_padded_is_refused_with_the_way_out() -> None:
    with pytest.raises(TypeError, match="pass a `transform` that turns a list"):
        pad(Ragged(["a", "b"]))
    with pytest.raises(TypeError, match="cannot be padded"):
        pad(Ragged([torch.ones(1), torch.ones(1, dtype=torch.int64)]))
    with pytest.raises(ValueError, match=r"examples have \[1, 2\] dimensions"):
        pad(Ragged([torch.ones(1), torch.ones(1, 1)]))


def test_tensors_of_differing_width_join_into_ragged_examples() -> None:
    joined = nested.concat((torch.ones(2, 3),), (torch.ones(1, 5),))
    (column,) = nested.columns(joined)
    assert isinstance(column, Ragged)
    assert [tuple(tensor.shape) for tensor in column.tensors()] == [(3,), (3,), (5,)]


def test_taking_and_cutting_treat_ragged_examples_as_rows() -> None:
    inputs = {"text": Ragged(["a", "b", "c"]), "x": torch.arange(3)}
    taken = nested.take(inputs, torch.tensor([2, 0]))
    assert isinstance(taken, dict)
    assert list(taken["text"]) == ["c", "a"]
    assert taken["x"].tolist() == [2, 0]
    part = nested.cut(inputs, 1, 3)
    assert isinstance(part, dict)
    assert list(part["text"]) == ["b", "c"]
