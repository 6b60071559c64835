from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from recollect.datasets import from_arrays, from_huggingface, from_torch_dataset


def test_arrays_and_tensors_keep_their_dtype_and_their_memory() -> None:
    array = np.zeros((3, 2), dtype=np.uint8)
    examples = from_arrays(array, np.array([0, 2, 1], dtype=np.int16))
    assert examples.inputs.dtype == torch.uint8
    assert examples.labels.tolist() == [0, 2, 1]
    assert examples.labels.dtype == torch.int64
    array[0, 0] = 9
    assert examples.inputs[0, 0] == 9
    tensor = torch.zeros(3, 2)
    assert from_arrays(tensor, torch.tensor([0, 1, 1])).inputs is tensor


def test_a_read_only_array_is_copied() -> None:
    array = np.zeros((2, 2))
    array.flags.writeable = False
    from_arrays(array, np.array([0, 1])).inputs[0, 0] = 1.0
    assert array[0, 0] == 0.0


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (torch.tensor([0.0, 1.0]), TypeError, "`labels` has dtype torch.float32"),
        (torch.tensor([True, False]), TypeError, "`labels` has dtype torch.bool"),
        (torch.eye(2, dtype=torch.int64), ValueError, r"shape \(2, 2\).*not one-hot"),
        (torch.tensor([0, -1]), ValueError, "`labels` has the value -1"),
        (torch.tensor([0]), ValueError, "`labels` has 1 entries for 2 `inputs`"),
    ],
)
def test_labels_that_are_no_class_numbers_are_refused(
    labels: torch.Tensor, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        from_arrays(torch.zeros(2, 3), labels)


def test_a_list_is_refused_with_what_to_pass() -> None:
    with pytest.raises(TypeError, match="`inputs` is a list; pass a torch tensor or a numpy array"):
        from_arrays([[1.0]], np.array([0]))  # type: ignore[arg-type]


def test_a_torch_data_set_is_read_once_through() -> None:
    inputs, labels = torch.arange(6.0).reshape(3, 2), torch.tensor([2, 0, 1])
    examples = from_torch_dataset(TensorDataset(inputs, labels))
    assert torch.equal(examples.inputs, inputs)
    assert torch.equal(examples.labels, labels)


class _Pictures(Dataset[Any]):
    """As torchvision gives them: PIL images and plain ints, and no IndexError at the end."""

    def __init__(self, mode: str) -> None:
        self._mode = mode

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> tuple[Image.Image, int]:
        return Image.new(self._mode, (5, 4), color=index % 2), index % 2


@pytest.mark.parametrize(("mode", "shape"), [("L", (2, 4, 5)), ("RGB", (2, 3, 4, 5))])
def test_pictures_become_bytes_channels_first(mode: str, shape: tuple[int, ...]) -> None:
    examples = from_torch_dataset(_Pictures(mode))
    assert examples.inputs.shape == shape
    assert examples.inputs.dtype == torch.uint8


class _Endless(IterableDataset[Any]):
    def __init__(self, items: list[Any]) -> None:
        self._items = items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)


def test_an_iterable_data_set_is_read_to_its_end() -> None:
    examples = from_torch_dataset(_Endless([(np.zeros(2), 1), (np.ones(2), 0)]))
    assert examples.labels.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([], "`dataset` is empty"),
        ([torch.zeros(2)], r"item 0 of `dataset` is a Tensor, not an \(input, label\) pair"),
        ([(torch.zeros(2), 0), (torch.zeros(3), 0)], r"shapes \[\(2,\), \(3,\)\]"),
    ],
)
def test_a_data_set_of_other_things_is_refused(items: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_torch_dataset(_Endless(items))


def test_a_hugging_face_split_becomes_examples() -> None:
    datasets = pytest.importorskip("datasets", reason="the `datasets` extra is not installed")
    split = datasets.Dataset.from_dict(
        {
            "img": [Image.new("RGB", (5, 4), (9, 8, 7))] * 2,
            "label": [1, 0],
            "vector": [[1.0, 2.0]] * 2,
        }
    )
    pictures = from_huggingface(split, input_column="img", label_column="label")
    assert pictures.inputs.shape == (2, 3, 4, 5)
    assert pictures.inputs[0, :, 0, 0].tolist() == [9, 8, 7]
    assert pictures.labels.tolist() == [1, 0]
    vectors = from_huggingface(split, input_column="vector", label_column="label")
    assert vectors.inputs.tolist() == [[1.0, 2.0]] * 2
    with pytest.raises(ValueError, match=r"`input_column` is `image`; this split has .*img, label"):
        from_huggingface(split, input_column="image", label_column="label")
