"""Tensors of one dtype, each in the shape it came in."""

from math import prod
from typing import final

import torch
from jaxtyping import Int64
from torch import Tensor
from typing_extensions import override

from recollect.errors import CheckpointError
from recollect.memory.columns.column import Column, Examples
from recollect.ragged import Ragged, as_one_tensor_if_alike


@final
class ShapedColumn(Column):
    """One tensor per slot."""

    def __init__(self, capacity: int, dtype: torch.dtype, device: torch.device) -> None:
        self.dtype, self.device = dtype, device
        self._rows = [torch.empty(0, dtype=dtype, device=device)] * capacity
        self._sizes = torch.zeros(capacity, dtype=torch.int64)

    @property
    @override
    def nbytes(self) -> int:
        return int(self._sizes.sum())

    @override
    def check_kind(self, examples: Examples) -> None:
        check_dtype(examples, self.dtype)

    @override
    def takes(self, examples: Examples) -> bool:
        return True

    @override
    def loosened(self, filled: int) -> Column:
        return self

    @override
    def sizes(self, examples: Examples) -> list[int]:
        if isinstance(examples, Tensor):
            return [examples.nbytes // max(len(examples), 1)] * len(examples)
        return [tensor.nbytes for tensor in examples.tensors()]

    @override
    def sizes_held(self, filled: int) -> list[int]:
        return self._sizes[:filled].tolist()

    @override
    def read(self, slots: Int64[Tensor, " slots"]) -> Examples:
        if not slots.numel():
            return Ragged(())
        found = as_one_tensor_if_alike([self._rows[slot] for slot in slots.tolist()])
        # Copies, as from a dense column: what is done to them must not reach the memory.
        return (
            found if isinstance(found, Tensor) else Ragged([row.clone() for row in found.tensors()])
        )

    @override
    def write(self, slots: Int64[Tensor, " slots"], examples: Examples) -> None:
        rows = examples.unbind() if isinstance(examples, Tensor) else examples.tensors()
        for slot, row in zip(slots.tolist(), rows, strict=True):
            # A copy: a view of the batch would keep the whole batch.
            self._rows[slot] = row.to(self.device, copy=True, memory_format=torch.contiguous_format)
            self._sizes[slot] = row.nbytes

    @override
    def erase(self, slots: list[int]) -> None:
        for slot in slots:
            self._rows[slot].zero_()
            self._rows[slot] = torch.empty(0, dtype=self.dtype, device=self.device)
            self._sizes[slot] = 0

    @override
    def state(self, filled: int) -> dict[str, Tensor]:
        rows = self._rows[:filled]
        empty = torch.empty(0, dtype=self.dtype, device=self.device)
        return {
            ".values": torch.cat([empty, *(row.flatten() for row in rows)]),
            ".shapes": torch.tensor([side for row in rows for side in row.shape]).long(),
            ".dims": torch.tensor([row.ndim for row in rows], dtype=torch.int64),
        }

    @classmethod
    def from_state(
        cls, values: Tensor, shapes: Tensor, dims: Tensor, capacity: int, device: torch.device
    ) -> "ShapedColumn":
        """Build the column that `state` described.

        Raises:
            CheckpointError: The numbers do not fit together.
        """
        column = cls(capacity, values.dtype, device)
        sides: list[int] = shapes.tolist()
        counts: list[int] = dims.tolist()
        starts = [sum(counts[:i]) for i in range(len(counts))]
        if min([0, *sides, *counts]) < 0 or sum(counts) != len(sides):
            raise CheckpointError("the memory's inputs are damaged: their shapes do not add up.")
        rows = [sides[start : start + count] for start, count in zip(starts, counts, strict=True)]
        if sum(map(prod, rows)) != values.numel():
            raise CheckpointError("the memory's inputs are damaged: their shapes do not add up.")
        parts = torch.split(values, [prod(shape) for shape in rows])
        each = [part.reshape(shape) for part, shape in zip(parts, rows, strict=True)]
        column.write(torch.arange(len(each)), Ragged(each))
        return column


def check_dtype(examples: Examples, dtype: torch.dtype) -> None:
    """Refuse what cannot stand beside tensors of a dtype."""
    if isinstance(examples, Ragged) and len(examples.tensors()) < len(examples):
        raise TypeError(f"`inputs` is {examples!r}, the memory holds tensors; pass tensors.")
    for tensor in (examples,) if isinstance(examples, Tensor) else examples.tensors():
        if tensor.dtype != dtype:
            raise TypeError(
                f"`inputs` has dtype {tensor.dtype}, the memory holds {dtype}; convert "
                "before `observe`, or start with an empty memory."
            )
