"""How a memory keeps one input of the model: as rows of a tensor, or each example on its own."""

from collections.abc import Mapping

import torch
from torch import Tensor

from recollect.errors import CheckpointError
from recollect.memory.columns.codec import Codec, PlainCodec
from recollect.memory.columns.column import Column, Examples
from recollect.memory.columns.dense import DenseColumn
from recollect.memory.columns.objects import ObjectColumn
from recollect.memory.columns.shaped import ShapedColumn

__all__ = ["Codec", "Column", "Examples", "PlainCodec", "column_for", "column_from_state"]


def column_for(examples: Examples, capacity: int, device: torch.device, codec: Codec) -> Column:
    """Make room for examples like these."""
    if isinstance(examples, Tensor):
        return DenseColumn(capacity, examples, device)
    tensors = examples.tensors()
    if len(tensors) == len(examples):
        return ShapedColumn(capacity, tensors[0].dtype, device)
    return ObjectColumn(capacity, codec)


def column_from_state(
    tensors: Mapping[str, Tensor], capacity: int, device: torch.device, codec: Codec
) -> Column:
    """Build the column that `state` described.

    Raises:
        CheckpointError: The tensors do not describe one.
    """
    if tensors.keys() == {""}:
        return DenseColumn.from_state(tensors[""], capacity, device)
    if tensors.keys() == {".values", ".shapes", ".dims"}:
        values, shapes, dims = (tensors[name] for name in (".values", ".shapes", ".dims"))
        return ShapedColumn.from_state(values, shapes, dims, capacity, device)
    if tensors.keys() == {".bytes", ".lengths"}:
        return ObjectColumn.from_state(tensors[".bytes"], tensors[".lengths"], capacity, codec)
    raise CheckpointError(f"the memory's inputs are damaged: they are {sorted(tensors)}.")
