"""Change images at random while they train: small, batched, on the model's device."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from recollect.augment.colour import ColourChange
from recollect.augment.compose import Compose
from recollect.augment.crop import RandomCrop
from recollect.augment.flip import RandomFlip
from recollect.augment.per_example import PerExample

__all__ = ["AUGMENTATIONS", "ColourChange", "Compose", "PerExample", "RandomCrop", "RandomFlip"]

#: Those whose options are plain values, by the names that specs give them.
AUGMENTATIONS: Final[Mapping[str, Callable[..., Callable[[Any], Any]]]] = {
    "ColourChange": ColourChange,
    "RandomCrop": RandomCrop,
    "RandomFlip": RandomFlip,
}
