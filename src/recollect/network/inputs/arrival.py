"""From what people have (arrays, lists, strings) to tensors and ragged examples."""

from collections.abc import Sequence
from numbers import Number

import numpy as np
import torch
from torch import Tensor

from recollect.ragged import Ragged, as_one_tensor_if_alike

# Unsigned numbers that torch stores but cannot index, and the next type that holds them.
_WIDER = {np.dtype(np.uint16): np.int32, np.dtype(np.uint32): np.int64}


def as_inputs(
    inputs: object, *, count: int | None, dtype: torch.dtype, lists_are_arguments: bool | None
) -> object:
    """Turn arrays and lists into columns; what is made of tensors already stays as it is.

    A tuple or a dict holds several inputs of the model. A list holds examples, unless its entries
    are tensors with one row per example.

    Args:
        inputs: As the caller gave them.
        count: How many examples there are, if that is known.
        dtype: For real numbers that come without a precision of their own: Python's, and NumPy's
            default of 64 bits.
        lists_are_arguments: Whether lists of tensors meant several inputs before; None if there was
            no batch yet.
    """
    if isinstance(inputs, Tensor | Ragged):
        return inputs
    if isinstance(inputs, np.ndarray):
        return _of_array(inputs, dtype)
    if isinstance(inputs, dict):
        return {key: _column(entry, count, dtype) for key, entry in inputs.items()}
    if isinstance(inputs, tuple):
        return tuple(_column(entry, count, dtype) for entry in inputs)
    if isinstance(inputs, list) and inputs:
        if _holds_arguments(inputs, count, lists_are_arguments):
            return [_column(entry, count, dtype) for entry in inputs]
        return _of_examples(inputs, dtype)
    return inputs  # a single object, which the checks that follow refuse


def as_labels(labels: object, *, dtype: torch.dtype) -> object:
    """Turn an array or a list of numbers into a tensor; anything else stays as it is."""
    if isinstance(labels, np.ndarray) and labels.dtype.kind not in "OUS":
        return _of_array(labels, dtype)
    if isinstance(labels, list | tuple) and labels:
        if any(isinstance(label, Tensor) for label in labels):
            found = _of_examples(list(labels), dtype)
            return labels if isinstance(found, Ragged) else found
        array = _numbers(labels)
        return labels if array is None else _of_array(array, dtype)
    return labels


def _column(entry: object, count: int | None, dtype: torch.dtype) -> object:
    """Take one of several inputs; it may again be a nesting."""
    if isinstance(entry, list) and entry and not isinstance(entry[0], Tensor):
        return _of_examples(entry, dtype)
    if isinstance(entry, list) and len(entry) == count:
        return _of_examples(entry, dtype)
    return as_inputs(entry, count=count, dtype=dtype, lists_are_arguments=True)


def _holds_arguments(entries: list[object], count: int | None, known: bool | None) -> bool:
    """Whether a list holds several inputs of the model rather than examples.

    Raises:
        ValueError: It may be either, and there was no batch before that would tell.
    """
    if not all(isinstance(entry, Tensor | np.ndarray) and entry.ndim for entry in entries):
        return False
    if known is not None:
        return known
    if count is None:
        return True
    rows = {len(entry) for entry in entries if isinstance(entry, Tensor | np.ndarray)}
    if rows == {count} and len(entries) == count > 1:
        raise ValueError(
            f"`inputs` is a list of {count} tensors of {count} rows for {count} labels, which may "
            "be examples or several inputs; pass a tuple for several inputs, or `Ragged(list)` for "
            "examples."
        )
    return rows == {count}


def _of_examples(examples: Sequence[object], dtype: torch.dtype) -> Tensor | Ragged:
    """Take a list with one entry per example."""
    if all(isinstance(example, Tensor) for example in examples):
        return as_one_tensor_if_alike([e for e in examples if isinstance(e, Tensor)])
    if all(isinstance(example, Number) for example in examples):
        array = _numbers(examples)
        if array is not None:
            return _of_array(array, dtype)
    if all(isinstance(example, list | tuple | np.ndarray) for example in examples):
        arrays = [_numbers(example) for example in examples]
        known = [array for array in arrays if array is not None]
        if len(known) == len(arrays):
            kind = np.result_type(*known)  # whole and real numbers may stand in one batch
            rows = [_of_array(array.astype(kind), dtype) for array in known]
            return as_one_tensor_if_alike([row for row in rows if isinstance(row, Tensor)])
    return Ragged(examples)


def _numbers(value: object) -> np.ndarray | None:
    """Read nested lists of numbers as an array; None if they are ragged or something else."""
    try:
        array = np.asarray(value)
    except ValueError:
        return None
    return array if array.dtype.kind in "biufc" else None


def _of_array(array: np.ndarray, dtype: torch.dtype) -> Tensor | Ragged:
    if array.dtype.kind in "OUS":
        return Ragged(array.tolist())
    if array.dtype == np.float64:  # NumPy's default says nothing of the precision that is meant
        return torch.from_numpy(array.astype(_as_numpy(dtype))).to(dtype)
    array = array.astype(_WIDER.get(array.dtype, array.dtype.newbyteorder("=")), copy=False)
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()
    return torch.from_numpy(np.ascontiguousarray(array) if array.ndim else array)


def _as_numpy(dtype: torch.dtype) -> type[np.floating]:
    return np.float64 if dtype == torch.float64 else np.float32
