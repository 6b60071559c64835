import numpy as np
import pytest
import torch
from torch import Tensor

from recollect.network.inputs.arrival import as_inputs, as_labels
from recollect.ragged import Ragged


def taken(inputs: object, count: int | None = 3, *, known: bool | None = None) -> object:
    return as_inputs(inputs, count=count, dtype=torch.float32, lists_are_arguments=known)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.zeros((3, 2), np.uint8), torch.zeros(3, 2, dtype=torch.uint8)),
        (np.zeros((3, 2)), torch.zeros(3, 2)),
        (np.zeros((3, 2), np.float16), torch.zeros(3, 2, dtype=torch.float16)),
        (np.full((3,), 60000, np.uint16), torch.full((3,), 60000, dtype=torch.int32)),
        (np.ones((3, 2), ">f4"), torch.ones(3, 2)),
        (np.arange(6).reshape(3, 2)[::-1], torch.tensor([[4, 5], [2, 3], [0, 1]])),
        ([[1, 2], [3, 4], [5, 6]], torch.tensor([[1, 2], [3, 4], [5, 6]])),
        ([0.5, 1, 2], torch.tensor([0.5, 1.0, 2.0])),
        ([[1, 2], [0.5, 4], [5, 6]], torch.tensor([[1, 2], [0.5, 4], [5, 6]])),
        ([torch.ones(2)] * 3, torch.ones(3, 2)),
        ([np.ones(2, np.float32)] * 3, torch.ones(3, 2)),
        ([True, False, True], torch.tensor([True, False, True])),
    ],
)
def test_arrays_and_lists_of_numbers_become_one_tensor(given: object, expected: Tensor) -> None:
    found = taken(given)
    assert isinstance(found, Tensor)
    assert found.dtype == expected.dtype
    assert torch.equal(found, expected)


@pytest.mark.parametrize(
    "given",
    [
        [[1, 2, 3], [4], [5, 6]],
        [np.array([1, 2, 3]), np.array([4]), np.array([5, 6])],
        [torch.tensor([1, 2, 3]), torch.tensor([4]), torch.tensor([5, 6])],
    ],
)
def test_lists_of_differing_length_become_ragged_examples(given: object) -> None:
    found = taken(given)
    assert isinstance(found, Ragged)
    assert [tensor.tolist() for tensor in found.tensors()] == [[1, 2, 3], [4], [5, 6]]


def test_a_float_in_one_of_several_ragged_lists_makes_all_real() -> None:
    found = taken([[1], [0.5, 2]], 2)
    assert isinstance(found, Ragged)
    assert {tensor.dtype for tensor in found.tensors()} == {torch.float32}


@pytest.mark.parametrize("given", [["a", "bc", ""], np.array(["a", "bc", ""])])
def test_strings_become_ragged_examples(given: object) -> None:
    found = taken(given)
    assert isinstance(found, Ragged)
    assert list(found) == ["a", "bc", ""]


def test_tuples_and_dicts_are_several_inputs() -> None:
    found = taken(([[1], [2, 3], [4]], np.zeros(3)))
    assert isinstance(found, tuple)
    assert isinstance(found[0], Ragged)
    assert found[1].dtype == torch.float32
    named = taken({"ids": [[1], [2, 3], [4]], "more": torch.ones(3, 2)})
    assert isinstance(named, dict)
    assert isinstance(named["ids"], Ragged)


def test_a_list_of_tensors_with_a_row_per_label_stays_several_inputs() -> None:
    given = [torch.ones(3, 2), torch.ones(3)]
    assert taken(given) == given
    assert taken(given, None) == given


def test_a_list_that_may_be_either_is_refused_until_a_batch_has_told() -> None:
    given = [torch.ones(2, 4), torch.ones(2, 4)]
    with pytest.raises(ValueError, match="pass a tuple for several inputs"):
        taken(given, 2)
    assert isinstance(taken(given, 2, known=False), Tensor)
    assert isinstance(taken(given, 2, known=True), list)


def test_labels_become_tensors_and_names_stay() -> None:
    kinds = [([1, 2], torch.int64), (np.array([1.5, 2]), torch.float32), ((0.5, 1), torch.float32)]
    for given, dtype in kinds:
        found = as_labels(given, dtype=torch.float32)
        assert isinstance(found, Tensor)
        assert found.dtype == dtype
    assert as_labels([torch.tensor(1), torch.tensor(2)], dtype=torch.float32).tolist() == [1, 2]  # type: ignore[attr-defined]
    assert as_labels(["cat", "dog"], dtype=torch.float32) == ["cat", "dog"]
