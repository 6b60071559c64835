"""Change images at random while they train: small, batched, on the model's device."""

from recollect.augment.colour import ColourChange
from recollect.augment.compose import Compose
from recollect.augment.crop import RandomCrop
from recollect.augment.flip import RandomFlip
from recollect.augment.per_example import PerExample

__all__ = ["ColourChange", "Compose", "PerExample", "RandomCrop", "RandomFlip"]
