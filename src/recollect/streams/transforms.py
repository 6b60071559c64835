"""What a segment does to its inputs: nothing, a pixel permutation, a rotation."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from recollect.streams.seeds import derived_generator

InputTransform = Callable[[Tensor], Tensor]
"""Maps a batch of stored inputs to the inputs of a segment, shape and dtype unchanged."""


@dataclass(frozen=True)
class Unchanged:
    """Give the inputs back as they are."""

    def __call__(self, inputs: Tensor) -> Tensor:
        """Return `inputs` itself."""
        return inputs


@dataclass(frozen=True, eq=False)
class PixelPermutation:
    """Move every pixel to another place, the same way for all examples and channels.

    Args:
        sources: `sources[i]` is the flat position whose pixel lands at flat position i.

    Example:
        >>> swap = PixelPermutation(torch.tensor([1, 0, 2]))
        >>> swap(torch.tensor([[10, 20, 30]]))
        tensor([[20, 10, 30]])
        >>> swap.inverse()(swap(torch.tensor([[10, 20, 30]])))
        tensor([[10, 20, 30]])
    """

    sources: Tensor

    def __post_init__(self) -> None:
        if not torch.equal(self.sources.sort().values, torch.arange(len(self.sources))):
            raise ValueError(
                f"`sources` has {len(self.sources)} entries that do not name every position once; "
                "pass a permutation of 0, 1, ..."
            )

    @classmethod
    def random(cls, num_pixels: int, *, seed: int, segment_index: int) -> "PixelPermutation":
        """Draw the permutation of one segment. It does not depend on how many segments follow."""
        generator = derived_generator(seed, "permutation", segment_index)
        return cls(torch.randperm(num_pixels, generator=generator))

    def inverse(self) -> "PixelPermutation":
        """Return the permutation that undoes this one."""
        return PixelPermutation(torch.argsort(self.sources))

    def __call__(self, inputs: Tensor) -> Tensor:
        """Permute the last two dimensions of images as one, or the last of vectors."""
        if num_pixels(inputs) != len(self.sources):
            raise ValueError(
                f"`inputs` has {num_pixels(inputs)} pixels; this permutation is over "
                f"{len(self.sources)}. Pass inputs of the shape it was made for."
            )
        pixels = inputs.flatten(-2) if inputs.ndim > 2 else inputs
        return pixels[..., self.sources].reshape(inputs.shape)


def num_pixels(inputs: Tensor) -> int:
    """Count the places a permutation moves: height times width, or the length of a vector."""
    return inputs.shape[-1] * inputs.shape[-2] if inputs.ndim > 2 else inputs.shape[-1]


@dataclass(frozen=True)
class Rotation:
    """Turn images counter-clockwise about their centre.

    Square images at multiples of 90 degrees are moved pixel by pixel, so four quarter turns give
    back the same bits. Other angles are read by bilinear interpolation with black outside the
    image, and integer images are rounded to the nearest value.

    Args:
        angle: Degrees, any sign.

    Example:
        >>> Rotation(90)(torch.tensor([[[1, 2], [3, 4]]], dtype=torch.uint8)).tolist()
        [[[2, 4], [1, 3]]]
    """

    angle: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.angle):
            raise ValueError(f"`angle` is {self.angle}; pass a finite number of degrees.")

    def __call__(self, inputs: Tensor) -> Tensor:
        """Turn `inputs` of shape (examples, height, width) or (examples, channels, ...)."""
        if inputs.ndim not in (3, 4):
            raise ValueError(
                f"`inputs` has shape {tuple(inputs.shape)}; a rotation needs images: "
                "(examples, height, width) or (examples, channels, height, width)."
            )
        quarter_turns, rest = divmod(self.angle, 90)
        if rest == 0 and inputs.shape[-1] == inputs.shape[-2]:
            return torch.rot90(inputs, int(quarter_turns), dims=(-2, -1))
        return _interpolated_rotation(inputs, self.angle)


def _interpolated_rotation(inputs: Tensor, angle: float) -> Tensor:
    images = inputs if inputs.ndim == 4 else inputs.unsqueeze(1)
    height, width = images.shape[-2:]
    cosine, sine = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    # affine_grid asks where each output pixel is read from, in coordinates from -1 to 1 with y
    # downwards; the side ratios keep a rotation of a non-square image from becoming a shear.
    matrix = torch.tensor(
        [[cosine, -sine * height / width, 0.0], [sine * width / height, cosine, 0.0]]
    )
    grid = F.affine_grid(matrix.expand(len(images), 2, 3), list(images.shape), align_corners=False)
    turned = F.grid_sample(images.float(), grid, mode="bilinear", align_corners=False)
    if not inputs.is_floating_point():
        limits = torch.iinfo(inputs.dtype)
        turned = turned.round().clamp(limits.min, limits.max)
    return turned.to(inputs.dtype).reshape(inputs.shape)
