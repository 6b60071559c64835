"""What a convolution sees: its patches, its padding, and the weight gradient of whole batches."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Final

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn import grad as nn_grad

from recollect.gradients.room import Room

Convolution = nn.Conv1d | nn.Conv2d | nn.Conv3d
_WEIGHT_GRADIENT: Final[dict[int, Callable[..., Tensor]]] = {
    1: nn_grad.conv1d_weight,
    2: nn_grad.conv2d_weight,
    3: nn_grad.conv3d_weight,
}


def padded(layer: Convolution, activations: Tensor) -> Tensor:
    """Apply any padding but a number of zeros, which every function here applies itself."""
    if layer.padding_mode == "zeros" and not isinstance(layer.padding, str):
        return activations
    mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
    return F.pad(activations, layer._reversed_padding_repeated_twice, mode=mode)


def patches(
    layer: Convolution,
    activations: Tensor,
    out_sides: Sequence[int],
    room: Room | None = None,
) -> Float[Tensor, "examples positions patch"]:
    """What each output position sees: the kernel's pixels, each with its channels side by side.

    They are written into `room`, or into memory of their own.
    """
    pixels = activations.movedim(1, -1)
    padding = _zeros_around(layer)
    if any(padding):
        both_ends = [side for width in reversed(padding) for side in (width, width)]
        pixels = F.pad(pixels, (0, 0, *both_ends))
    pixels = pixels.contiguous()
    of_example, *of_sides, _ = pixels.stride()
    seen = pixels.as_strided(
        (len(pixels), *out_sides, *layer.kernel_size, pixels.shape[-1]),
        (
            of_example,
            *(step * stride for step, stride in zip(of_sides, layer.stride, strict=True)),
            *(step * gap for step, gap in zip(of_sides, layer.dilation, strict=True)),
            1,
        ),
        pixels.storage_offset(),
    )
    shape = (len(seen), prod(out_sides), layer.weight[0].numel())
    if room is None:
        return seen.reshape(shape)
    lent = room.lend(shape, seen)
    lent.view(seen.shape).copy_(seen)
    return lent


def weight_gradient(
    layer: Convolution, activations: Tensor, cotangents: Tensor, *, folds: int = 1
) -> Tensor:
    """Gradient of a batch; with `folds`, the channels of so many examples stand side by side."""
    return _WEIGHT_GRADIENT[layer.weight.ndim - 2](
        activations,
        (cotangents.shape[1], *layer.weight.shape[1:]),
        cotangents,
        stride=layer.stride,
        padding=_zeros_around(layer),
        dilation=layer.dilation,
        groups=layer.groups * folds,
    )


def _zeros_around(layer: Convolution) -> tuple[int, ...]:
    if layer.padding_mode != "zeros" or isinstance(layer.padding, str):
        return (0,) * (layer.weight.ndim - 2)
    return layer.padding
