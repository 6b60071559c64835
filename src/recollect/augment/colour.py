"""Small changes of brightness and contrast."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from recollect.augment.checks import check_images, check_share, per_image


@final
@dataclass(frozen=True)
class ColourChange:
    r"""Change brightness and contrast of each image a little: x' = m + s (x - m) + b.

    m is the image's mean, s is drawn from [1 - contrast, 1 + contrast], b from [-brightness,
    brightness] times the width of `value_range`. Results are cut to the range.

    Args:
        brightness: Largest shift, as a part of the range.
        contrast: Largest change of the spread around the mean.
        value_range: Smallest and largest value of a floating-point image; (0, 1), or (-1, 1) where
            a `transform` made it so. Images of whole numbers have the range of their dtype.
    """

    brightness: float = 0.1
    contrast: float = 0.1
    value_range: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        check_share("brightness", self.brightness)
        check_share("contrast", self.contrast)
        low, high = self.value_range
        if not low < high:
            raise ValueError(f"`value_range` is {self.value_range!r}; pass (smallest, largest).")

    def __call__(self, images: Tensor) -> Tensor:
        """Return the changed images in the dtype they came in; `images` stay as they are."""
        images = check_images(images, self)
        is_real = images.is_floating_point()
        low, high = self.value_range if is_real else _range_of(images.dtype)
        drawn = 2 * torch.rand(2, len(images)) - 1
        scale = per_image(1 + self.contrast * drawn[0], images)
        shift = per_image(self.brightness * (high - low) * drawn[1], images)
        values = images if is_real else images.float()
        mean = values.flatten(1).mean(1).reshape(scale.shape)
        changed = (mean + shift + scale * (values - mean)).clamp_(low, high)
        return changed.to(images.dtype) if is_real else changed.round_().to(images.dtype)


def _range_of(dtype: torch.dtype) -> tuple[float, float]:
    limits = torch.iinfo(dtype)
    return float(limits.min), float(limits.max)
