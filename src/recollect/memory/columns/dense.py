"""Examples of one shape and dtype, as rows of one tensor."""

from typing import Final, final

import torch
from jaxtyping import Int64
from torch import Tensor
from typing_extensions import override

from recollect.memory.columns.column import Column, Examples
from recollect.memory.columns.shaped import ShapedColumn, check_dtype

# Tokens and masks: texts differ in length. Bytes are left out, which are mostly images.
_OF_SEQUENCES: Final = (torch.int64, torch.int32, torch.bool)


@final
class DenseColumn(Column):
    """Rows of a tensor whose bytes are taken once."""

    def __init__(self, capacity: int, like: Tensor, device: torch.device) -> None:
        self.rows = torch.empty((capacity, *like.shape[1:]), dtype=like.dtype, device=device)

    @property
    @override
    def nbytes(self) -> int:
        return self.rows.nbytes

    @override
    def check_kind(self, examples: Examples) -> None:
        check_dtype(examples, self.rows.dtype)

    @override
    def check_shape(self, examples: Tensor) -> None:
        here, there = tuple(self.rows.shape[1:]), tuple(examples.shape[1:])
        if here == there or (self.rows.dtype in _OF_SEQUENCES and len(here) == len(there)):
            return
        raise ValueError(
            f"`inputs` has examples of shape {there}, the memory holds {here}. If examples may "
            "differ, pass `collate=recollect.pad` to `Learner`; else resize before `observe`."
        )

    @override
    def takes(self, examples: Examples) -> bool:
        return isinstance(examples, Tensor) and examples.shape[1:] == self.rows.shape[1:]

    @override
    def loosened(self, filled: int) -> ShapedColumn:
        column = ShapedColumn(len(self.rows), self.rows.dtype, self.rows.device)
        column.write(torch.arange(filled), self.rows[:filled])
        return column

    @property
    @override
    def row_bytes(self) -> int:
        return self.rows[:1].nbytes

    @override
    def cut(self, capacity: int) -> "DenseColumn":
        return self.from_state(self.rows[:capacity], capacity, self.rows.device)

    @override
    def sizes(self, examples: Examples) -> list[int]:
        return [0] * len(examples)

    @override
    def sizes_held(self, filled: int) -> list[int]:
        return [0] * filled

    @override
    def read(self, slots: Int64[Tensor, " slots"]) -> Tensor:
        return self.rows.index_select(0, slots.to(self.rows.device))

    @override
    def write(self, slots: Int64[Tensor, " slots"], examples: Examples) -> None:
        assert isinstance(examples, Tensor)
        self.rows.index_copy_(0, slots.to(self.rows.device), examples.to(self.rows.device))

    @override
    def erase(self, slots: list[int]) -> None:
        self.rows[slots] = torch.zeros((), dtype=self.rows.dtype, device=self.rows.device)

    @override
    def state(self, filled: int) -> dict[str, Tensor]:
        return {"": self.rows[:filled]}

    @classmethod
    def from_state(cls, rows: Tensor, capacity: int, device: torch.device) -> "DenseColumn":
        """Build the column that `state` described."""
        column = cls(capacity, rows, device)
        column.rows[: len(rows)] = rows
        return column
