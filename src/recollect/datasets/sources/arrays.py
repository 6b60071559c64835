"""Arrays, tensors and other libraries' data sets as examples."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from recollect.datasets.examples import Examples

Array = Tensor | NDArray[Any]


def from_arrays(inputs: Array, labels: Array) -> Examples:
    """Return examples from two tensors or numpy arrays.

    Args:
        inputs: First dimension examples, any dtype (kept); memory is shared where it can be.
        labels: One integer class per example, 0 or more.

    Raises:
        TypeError: An argument is neither tensor nor array, or the labels are not integers.
        ValueError: The labels are not one-dimensional, not as many as the inputs, or negative.

    Example:
        >>> len(from_arrays(torch.zeros(3, 28, 28), torch.tensor([0, 1, 1])))
        3
    """
    return Examples(
        _as_tensor(inputs, name="inputs"), _as_labels(_as_tensor(labels, name="labels"))
    )


def from_torch_dataset(dataset: Dataset[Any]) -> Examples:
    """Return examples from a `torch.utils.data.Dataset` of (input, label) pairs, read once through.

    Args:
        dataset: Map-style or iterable. Inputs may be tensors, numpy arrays, numbers or PIL images
            (which become uint8, channels first), all of one shape.

    Raises:
        ValueError: It is empty, an item is no pair, or the shapes differ.

    Example:
        >>> pairs = torch.utils.data.TensorDataset(torch.zeros(3, 4), torch.tensor([0, 1, 1]))
        >>> from_torch_dataset(pairs).labels
        tensor([0, 1, 1])
    """
    inputs: list[Tensor] = []
    labels: list[Tensor] = []
    for index, item in enumerate(_items(dataset)):
        if not (isinstance(item, tuple | list) and len(item) == 2):
            raise ValueError(
                f"item {index} of `dataset` is a {type(item).__name__}, not an (input, label) "
                "pair; wrap the data set so that it gives pairs."
            )
        inputs.append(_one_input(item[0]))
        labels.append(torch.as_tensor(item[1]))
    return from_arrays(_stacked(inputs, name="dataset"), torch.stack(labels))


def from_huggingface(split: Any, *, input_column: str, label_column: str) -> Examples:
    """Return examples from one split of a Hugging Face `datasets` data set.

    Args:
        split: A `datasets.Dataset` (one split, not the dict of splits).
        input_column: The column of inputs: images, arrays, lists of numbers or numbers.
        label_column: The column of integer classes.

    Raises:
        ValueError: A column is not there, or the inputs differ in shape.
    """
    for argument, column in (("input_column", input_column), ("label_column", label_column)):
        if column not in split.column_names:
            raise ValueError(
                f"`{argument}` is `{column}`; this split has the columns "
                f"{', '.join(split.column_names)}. Pass one split and one of its columns."
            )
    inputs = [_one_input(value) for value in split[input_column]]
    return from_arrays(_stacked(inputs, name=input_column), np.asarray(list(split[label_column])))


def _items(dataset: Dataset[Any]) -> Iterable[Any]:
    if isinstance(dataset, torch.utils.data.IterableDataset):
        return iter(dataset)
    # By index to the stated length: a map-style set need not raise IndexError at its end.
    return (dataset[index] for index in range(len(dataset)))  # type: ignore[arg-type]


def _one_input(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    from PIL import Image

    if isinstance(value, Image.Image):
        pixels = np.array(value)
        return torch.from_numpy(pixels if pixels.ndim == 2 else pixels.transpose(2, 0, 1).copy())
    return torch.as_tensor(value)


def _stacked(inputs: list[Tensor], *, name: str) -> Tensor:
    if not inputs:
        raise ValueError(f"`{name}` is empty; pass at least one example.")
    shapes = {tuple(one.shape) for one in inputs}
    if len(shapes) > 1:
        raise ValueError(
            f"`{name}` has inputs of the shapes {sorted(shapes)[:3]}; a model takes one. Resize "
            "or pad them first."
        )
    return torch.stack(inputs)


def _as_tensor(values: Array, *, name: str) -> Tensor:
    if isinstance(values, Tensor):
        return values
    if isinstance(values, np.ndarray):
        # A read-only array (a memory map, a broadcast) is copied: torch cannot keep it read-only.
        return torch.from_numpy(values if values.flags.writeable else values.copy())
    raise TypeError(f"`{name}` is a {type(values).__name__}; pass a torch tensor or a numpy array.")


def _as_labels(labels: Tensor) -> Tensor:
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise TypeError(f"`labels` has dtype {labels.dtype}; pass integer class numbers.")
    if labels.ndim != 1:
        raise ValueError(
            f"`labels` has shape {tuple(labels.shape)}; pass one class number per example, not "
            "one-hot rows."
        )
    if len(labels) and int(labels.min()) < 0:
        raise ValueError(f"`labels` has the value {int(labels.min())}; classes start at 0.")
    return labels.long()
