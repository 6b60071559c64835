"""Inputs may be a tensor, or a tuple, list or dict of them; these few functions treat all alike."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor

# A recursive alias would be truer, but run-time shape checks cannot follow one.
Inputs: TypeAlias = "Tensor | tuple[object, ...] | list[object] | dict[str, object]"


def leaves(inputs: object) -> list[Tensor]:
    """List the tensors of `inputs`, dict entries in insertion order.

    Raises:
        TypeError: something in `inputs` is not a tensor.
    """
    if isinstance(inputs, Tensor):
        return [inputs]
    if isinstance(inputs, dict):
        return [leaf for value in inputs.values() for leaf in leaves(value)]
    if isinstance(inputs, tuple | list):
        return [leaf for value in inputs for leaf in leaves(value)]
    raise TypeError(
        f"`inputs` holds a {type(inputs).__name__}; pass a tensor, or a tuple, list or dict of "
        "tensors."
    )


def replace_leaves(inputs: object, tensors: Sequence[Tensor]) -> object:
    """Rebuild the structure of `inputs` around `tensors`."""
    remaining = iter(tensors)

    def rebuild(value: object) -> object:
        if isinstance(value, Tensor):
            return next(remaining)
        if isinstance(value, dict):
            return {key: rebuild(entry) for key, entry in value.items()}
        assert isinstance(value, tuple | list)
        entries = [rebuild(entry) for entry in value]
        return tuple(entries) if isinstance(value, tuple) else entries  # a named tuple becomes one

    return rebuild(inputs)


def map_leaves(function: Callable[[Tensor], Tensor], inputs: object) -> object:
    """Apply `function` to every tensor of `inputs`."""
    if isinstance(inputs, Tensor):
        return function(inputs)
    return replace_leaves(inputs, [function(leaf) for leaf in leaves(inputs)])


def concat(first: object, second: object) -> object:
    """Put the examples of `second` behind those of `first`, on its device, structures alike."""
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return torch.cat((first, second.to(first.device)))
    pairs = zip(leaves(first), leaves(second), strict=True)
    return replace_leaves(first, [torch.cat((a, b.to(a.device))) for a, b in pairs])


def skeleton(inputs: object) -> object:
    """Describe the structure of `inputs` in JSON terms: None for a tensor."""
    if isinstance(inputs, Tensor):
        return None
    if isinstance(inputs, dict):
        return {"dict": [[key, skeleton(value)] for key, value in inputs.items()]}
    kind = "tuple" if isinstance(inputs, tuple) else "list"
    assert isinstance(inputs, tuple | list)
    return {kind: [skeleton(value) for value in inputs]}


def from_skeleton(described: object, tensors: Sequence[Tensor]) -> object:
    """Build inputs of the structure that `skeleton` described around `tensors`."""
    remaining = iter(tensors)

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
