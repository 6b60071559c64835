"""Inputs may be a tensor, or a tuple, list or dict of them; these functions treat all alike.

Where they are examples, each is a column: a tensor whose first dimension counts them, or `Ragged`.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from recollect.ragged import Ragged

# A recursive alias would be truer, but run-time shape checks cannot follow one.
Inputs: TypeAlias = "Tensor | Ragged | tuple[object, ...] | list[object] | dict[str, object]"
Column: TypeAlias = Tensor | Ragged


def leaves(inputs: object) -> list[Tensor]:
    """List the tensors of `inputs`, dict entries in insertion order.

    Raises:
        TypeError: something in `inputs` is not a tensor.
    """
    if isinstance(inputs, Tensor):
        return [inputs]
    found = columns(inputs)
    ragged = next((column for column in found if isinstance(column, Ragged)), None)
    if ragged is not None:
        raise TypeError(f"`inputs` holds {ragged!r}; pass tensors here.")
    return [column for column in found if isinstance(column, Tensor)]


def columns(inputs: object) -> list[Column]:
    """List the columns of `inputs`, dict entries in insertion order.

    Raises:
        TypeError: something in `inputs` is no column.
    """
    if isinstance(inputs, Tensor | Ragged):
        return [inputs]
    if isinstance(inputs, dict):
        return [column for value in inputs.values() for column in columns(value)]
    if isinstance(inputs, tuple | list):
        return [column for value in inputs for column in columns(value)]
    raise TypeError(
        f"`inputs` holds a {type(inputs).__name__}; pass a tensor, or a tuple, list or dict of "
        "tensors."
    )


def tensors(inputs: object) -> list[Tensor]:
    """List every tensor of `inputs`, those of ragged examples too."""
    if isinstance(inputs, Tensor):
        return [inputs]
    found: list[Tensor] = []
    for column in columns(inputs):
        found += [column] if isinstance(column, Tensor) else column.tensors()
    return found


def replace_leaves(inputs: object, replacements: Sequence[object]) -> object:
    """Rebuild the structure of `inputs` around what replaces its columns."""
    remaining = iter(replacements)

    def rebuild(value: object) -> object:
        if isinstance(value, Tensor | Ragged):
            return next(remaining)
        if isinstance(value, dict):
            return {key: rebuild(entry) for key, entry in value.items()}
        assert isinstance(value, tuple | list)
        entries = [rebuild(entry) for entry in value]
        return tuple(entries) if isinstance(value, tuple) else entries  # a named tuple becomes one

    return rebuild(inputs)


def map_leaves(function: Callable[[Tensor], Tensor], inputs: object) -> object:
    """Apply `function` to every tensor of `inputs`, those of ragged examples too."""
    if isinstance(inputs, Tensor):
        return function(inputs)

    def of_column(column: Column) -> Column:
        if isinstance(column, Tensor):
            return function(column)
        return Ragged([function(e) if isinstance(e, Tensor) else e for e in column])

    return map_columns(of_column, inputs)


def map_columns(function: Callable[[Column], object], inputs: object) -> object:
    """Apply `function` to every column of `inputs`."""
    if isinstance(inputs, Tensor | Ragged):
        return function(inputs)
    return replace_leaves(inputs, [function(column) for column in columns(inputs)])


def take(inputs: object, indices: Tensor) -> object:
    """Return the examples at `indices`."""

    def chosen(column: Column) -> Column:
        if isinstance(column, Ragged):
            return column.take(indices)
        return column.index_select(0, indices.to(column.device))

    return map_columns(chosen, inputs)


def cut(inputs: object, start: int, stop: int) -> object:
    """Return some neighbouring examples."""

    def part(column: Column) -> Column:
        if isinstance(column, Ragged):
            return column.cut(start, stop)
        return column[start:stop]

    return map_columns(part, inputs)


def concat(first: object, second: object) -> object:
    """Put the examples of `second` behind those of `first`, structures alike.

    They are joined on an accelerator if one of them is there.
    """
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return _joined(first, second)
    pairs = zip(columns(first), columns(second), strict=True)
    return replace_leaves(first, [_joined(one, other) for one, other in pairs])


def _joined(first: Column, second: Column) -> Column:
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        first, second = on_one_device(first, second)
        if first.shape[1:] == second.shape[1:]:
            return torch.cat((first, second))
        return Ragged([*first, *second])
    both: list[object] = [*first, *second]
    elsewhere = [one.device for one in tensors(Ragged(both)) if one.device.type != "cpu"]
    if elsewhere:
        both = [one.to(elsewhere[0]) if isinstance(one, Tensor) else one for one in both]
    return Ragged(both)


def on_one_device(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Move one of two tensors to the other, away from the CPU if one of them is elsewhere."""
    if first.device == second.device:
        return first, second
    if first.device.type == "cpu":
        return first.to(second.device), second
    return first, second.to(first.device)


def skeleton(inputs: object) -> object:
    """Describe the structure of `inputs` in JSON terms: None for a column."""
    if isinstance(inputs, Tensor | Ragged):
        return None
    if isinstance(inputs, dict):
        return {"dict": [[key, skeleton(value)] for key, value in inputs.items()]}
    kind = "tuple" if isinstance(inputs, tuple) else "list"
    assert isinstance(inputs, tuple | list)
    return {kind: [skeleton(value) for value in inputs]}


def from_skeleton(described: object, replacements: Sequence[object]) -> object:
    """Build inputs of the structure that `skeleton` described around `replacements`."""
    remaining = iter(replacements)

    def build(node: object) -> object:
        if node is None:
            return next(remaining)
        assert isinstance(node, dict)
        ((kind, entries),) = node.items()
        if kind == "dict":
            return {key: build(entry) for key, entry in entries}
        values = [build(entry) for entry in entries]
        return tuple(values) if kind == "tuple" else values

    return build(described)
