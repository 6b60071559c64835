"""Random mirror images."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from recollect.augment.checks import check_images, check_share, per_image


@final
@dataclass(frozen=True)
class RandomFlip:
    """Mirror each image from left to right with probability `share`.

    Args:
        share: Part of the images that are mirrored, on average.
    """

    share: float = 0.5

    def __post_init__(self) -> None:
        check_share("share", self.share)

    def __call__(self, images: Tensor) -> Tensor:
        """Return the images, some of them mirrored; `images` stay as they are."""
        images = check_images(images, self)
        mirrored = torch.rand(len(images)) < self.share
        return torch.where(per_image(mirrored, images), images.flip(-1), images)
