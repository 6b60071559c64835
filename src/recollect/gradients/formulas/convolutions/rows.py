"""Write the gradients of a convolution out, one row per group.

The weight gradient of one example is a product of its cotangents with its patches. Rows hold the
input channels last, the order in which the patches of such images lie in memory.
"""

from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor

from recollect.gradients.formulas.convolutions.patches import Convolution, patches, weight_gradient
from recollect.gradients.groups import Groups
from recollect.gradients.scratch import Scratch

# Patches held at a time. More of them leave the cache, and the allocator asks the system for room
# anew each time: on layers of mini-ImageNet that made the products three times slower.
_PATCH_BYTES: Final = 2 * 2**20
_ALL_PATCH_BYTES: Final = 16 * 2**20
# From so many weights a position on, one product with all patches beats the library's convolution.
_WEIGHTS_A_POSITION: Final = 100


@torch.no_grad()
def weight_rows(
    layer: Convolution, activations: Tensor, cotangents: Tensor, groups: Groups, scratch: Scratch
) -> Float[Tensor, "groups outputs patch"]:
    """Weight gradients of groups that begin with the first example."""
    outputs, patch = cotangents.shape[1], layer.fan_in
    rows = cotangents.new_empty(len(groups), outputs, patch)
    first = 0
    for run in groups.runs():
        a, d = activations[run.start : run.stop], cotangents[run.start : run.stop]
        if run.size == 1:
            _write_each(layer, rows[first : first + run.count], a, d, scratch)
        else:
            pairs = zip(torch.split(a, run.size), torch.split(d, run.size), strict=True)
            for index, pair in enumerate(pairs, start=first):
                rows[index] = summed_weight(layer, *pair, scratch)
        first += run.count
    return rows


def _write_each(
    layer: Convolution, rows: Tensor, activations: Tensor, cotangents: Tensor, scratch: Scratch
) -> None:
    by_output = positions_first(cotangents).transpose(1, 2)
    at_once = max(1, _PATCH_BYTES // (by_output.shape[2] * rows[0, 0].nbytes))
    for start in range(0, len(rows), at_once):
        some = slice(start, start + at_once)
        seen = patches(layer, activations[some], cotangents.shape[2:], scratch)
        torch.bmm(by_output[some], seen, out=rows[some])


def summed_weight(
    layer: Convolution, activations: Tensor, cotangents: Tensor, scratch: Scratch
) -> Float[Tensor, "outputs patch"]:
    """Weight gradient of several examples together."""
    positions = cotangents[:, 0].numel()
    few = layer.weight_shape[0] * layer.fan_in < _WEIGHTS_A_POSITION * cotangents[0, 0].numel()
    if few or positions * layer.output_bytes > _ALL_PATCH_BYTES:
        gradient = weight_gradient(layer, activations, cotangents)
        return gradient.movedim(1, -1).flatten(1)
    seen = patches(layer, activations, cotangents.shape[2:], scratch)
    return positions_first(cotangents).flatten(0, 1).T @ seen.flatten(0, 1)


def positions_first(cotangents: Tensor) -> Float[Tensor, "examples positions outputs"]:
    """Lay the channels of a position side by side."""
    last = cotangents.movedim(1, -1)
    return last.reshape(len(last), -1, last.shape[-1])


def in_weight_shape(layer: Convolution, rows: Float[Tensor, "... outputs patch"]) -> Tensor:
    """Give rows the shape of the layer's weight."""
    inputs, *kernel = layer.weight_shape[1:]
    return rows.reshape(*rows.shape[:-1], *kernel, inputs).movedim(-1, -len(kernel) - 1)
