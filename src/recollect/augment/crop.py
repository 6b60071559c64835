"""Random crops."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor
from torch.nn import functional as F

from recollect.augment.checks import check_images


@final
@dataclass(frozen=True)
class RandomCrop:
    """Pad each image with zeros and cut its old size out at a random place of its own.

    Args:
        padding: Pixels added on each of the four sides.

    Example:
        >>> RandomCrop(padding=4)(torch.zeros(20, 3, 32, 32, dtype=torch.uint8)).shape
        torch.Size([20, 3, 32, 32])
    """

    padding: int = 4

    def __post_init__(self) -> None:
        if isinstance(self.padding, bool) or not isinstance(self.padding, int) or self.padding < 1:
            raise ValueError(f"`padding` is {self.padding!r}; pass a whole number of pixels.")

    def __call__(self, images: Tensor) -> Tensor:
        """Return the crops; `images` stay as they are."""
        images = check_images(images, self)
        height, width = images.shape[-2:]
        padded = F.pad(images, (self.padding,) * 4)
        # Drawn on the CPU: the same crops whatever the device.
        top, left = torch.randint(2 * self.padding + 1, (2, len(images), 1)).to(images.device)
        rows = top + torch.arange(height, device=images.device)
        columns = left + torch.arange(width, device=images.device)
        which = torch.arange(len(images), device=images.device)[:, None, None]
        pixels = padded.movedim(1, -1) if images.ndim == 4 else padded
        cut = pixels[which, rows[:, :, None], columns[:, None, :]]
        return cut.movedim(-1, 1) if images.ndim == 4 else cut
