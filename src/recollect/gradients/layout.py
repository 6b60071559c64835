"""Where the examples stand in a layer's tensors."""

from typing import Literal

import torch
from torch import Tensor

# first: dimension 0 counts examples. folded: dimension 0 counts examples times positions, as after
# `x.flatten(0, 1)`. second: dimension 1 counts examples, as in sequence-first models.
Layout = Literal["first", "folded", "second"]


def possible_layouts(shape: torch.Size, num_examples: int) -> list[Layout]:
    """List the layouts a tensor of `shape` admits, likeliest first."""
    layouts: list[Layout] = []
    if len(shape) and shape[0] == num_examples:
        layouts.append("first")
    elif len(shape) and shape[0] % num_examples == 0:
        layouts.append("folded")
    if len(shape) > 1 and shape[1] == num_examples:
        layouts.append("second")
    return layouts


def batch_first(tensor: Tensor, layout: Layout, num_examples: int) -> Tensor:
    """View `tensor` with examples in dimension 0."""
    if layout == "folded":
        return tensor.reshape(num_examples, -1, *tensor.shape[1:])
    return tensor.transpose(0, 1) if layout == "second" else tensor


def reaches_only(cotangents: Tensor, example: int, layout: Layout, num_examples: int) -> bool:
    """Whether the gradient of one example's loss is zero at every other example."""
    others = batch_first(cotangents, layout, num_examples).flatten(1)
    return not bool(others[torch.arange(num_examples) != example].any())
