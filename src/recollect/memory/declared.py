"""Columns that parts declare: a row per slot, such as a weight, a loss or logits."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

#: Rows by slot, and what stands for examples that came without.
Declared = Mapping[str, tuple[Tensor, float]]


@dataclass(frozen=True)
class MemoryColumn:
    """What a part keeps of each stored example.

    Attributes:
        name: By which the memory knows it.
        default: What stands for examples that were stored without.
    """

    name: str
    default: float = 0.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.default):
            raise ValueError(
                f"`default` of the column `{self.name}` is {self.default}, which no checkpoint "
                "holds; pass a finite number, such as `torch.finfo(torch.float32).max`."
            )


def with_column(
    declared: Declared, name: str, like: Tensor, default: float, capacity: int
) -> Declared:
    """Return the columns with one more, or with one that holds as many numbers a row as `like`.

    Raises:
        ValueError: Rows of another kind are kept under this name.
    """
    if name not in declared:
        rows = torch.full((capacity, *like.shape[1:]), default, dtype=like.dtype)
        return {**declared, name: (rows, default)}
    before = declared[name][0]
    shape, kept = tuple(like.shape[1:]), tuple(before.shape[1:])
    if before.dtype != like.dtype or len(kept) != len(shape) or kept[1:] != shape[1:]:
        raise ValueError(
            f"the memory's column `{name}` holds {before.dtype} of shape {kept} per example, and "
            f"was given {like.dtype} of {shape}; keep to one kind."
        )
    if kept >= shape:  # a head that was narrowed answers with fewer
        return declared
    rows = before.new_full((capacity, *shape), default)
    rows[:, : kept[0]] = before
    return {**declared, name: (rows, default)}


def with_capacity(declared: Declared, capacity: int, *, keep: bool) -> Declared:
    """Return the columns for another number of slots, with their first rows or empty."""
    return {
        name: (
            rows[:capacity].clone()
            if keep
            else rows.new_full((capacity, *rows.shape[1:]), default),
            default,
        )
        for name, (rows, default) in declared.items()
    }


def write_rows(rows: Tensor, slots: Tensor, default: float, given: Tensor | None) -> None:
    """Write what was given for examples, and the default where nothing was."""
    rows[slots] = default
    if given is not None and rows.ndim == 1:
        rows[slots] = given.to(rows)
    elif given is not None:
        rows[slots, : given.shape[1]] = given.to(rows)
