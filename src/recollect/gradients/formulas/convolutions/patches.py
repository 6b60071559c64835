"""What a convolution sees: its patches, and the weight gradient of whole batches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F
from torch.nn import grad as nn_grad

from recollect.gradients.scratch import Scratch

_WEIGHT_GRADIENT: Final[dict[int, Callable[..., Tensor]]] = {
    1: nn_grad.conv1d_weight,
    2: nn_grad.conv2d_weight,
    3: nn_grad.conv3d_weight,
}


@dataclass(frozen=True, slots=True)
class Convolution:
    """What a convolution does, apart from its numbers.

    Attributes:
        weight_shape: Outputs, inputs of one group of channels, then the kernel's sides.
        stride: Steps of the kernel, by side.
        padding: Zeros around, by side.
        dilation: Gaps within the kernel, by side.
        groups: Groups of channels.
        item_bytes: Size of one number.
    """

    weight_shape: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    item_bytes: int

    @property
    def kernel(self) -> tuple[int, ...]:
        """Its sides."""
        return self.weight_shape[2:]

    @property
    def fan_in(self) -> int:
        """Weights of one output."""
        return prod(self.weight_shape[1:])

    @property
    def output_bytes(self) -> int:
        """Size of the weights of one output."""
        return self.fan_in * self.item_bytes

    @property
    def weight_bytes(self) -> int:
        """Size of all weights."""
        return self.weight_shape[0] * self.output_bytes


def patches(
    layer: Convolution,
    activations: Tensor,
    out_sides: Sequence[int],
    scratch: Scratch | None = None,
) -> Float[Tensor, "examples positions patch"]:
    """What each output position sees: the kernel's pixels, each with its channels side by side.

    They are written into `scratch`, or into memory of their own.
    """
    pixels = activations.movedim(1, -1)
    padding = layer.padding
    if any(padding):
        both_ends = [side for width in reversed(padding) for side in (width, width)]
        pixels = F.pad(pixels, (0, 0, *both_ends))
    pixels = pixels.contiguous()
    of_example, *of_sides, _ = pixels.stride()
    seen = pixels.as_strided(
        (len(pixels), *out_sides, *layer.kernel, pixels.shape[-1]),
        (
            of_example,
            *(step * stride for step, stride in zip(of_sides, layer.stride, strict=True)),
            *(step * gap for step, gap in zip(of_sides, layer.dilation, strict=True)),
            1,
        ),
        pixels.storage_offset(),
    )
    shape = (len(seen), prod(out_sides), layer.fan_in)
    if scratch is None:
        return seen.reshape(shape)
    lent = scratch.lend(shape, seen)
    lent.view(seen.shape).copy_(seen)
    return lent


def weight_gradient(
    layer: Convolution, activations: Tensor, cotangents: Tensor, *, folds: int = 1
) -> Tensor:
    """Gradient of a batch; with `folds`, the channels of so many examples stand side by side."""
    return _WEIGHT_GRADIENT[len(layer.kernel)](
        activations,
        (cotangents.shape[1], *layer.weight_shape[1:]),
        cotangents,
        stride=layer.stride,
        padding=layer.padding,
        dilation=layer.dilation,
        groups=layer.groups * folds,
    )
