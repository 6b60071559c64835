"""Several augmentations after each other."""

from collections.abc import Callable
from typing import Any, final


@final
class Compose:
    """Apply augmentations one after the other.

    Example:
        >>> from recollect.augment import RandomCrop, RandomFlip
        >>> Compose(RandomCrop(padding=4), RandomFlip())
        Compose(RandomCrop(padding=4), RandomFlip(share=0.5))
    """

    def __init__(self, *steps: Callable[[Any], Any]) -> None:
        self.steps = steps

    def __call__(self, inputs: Any) -> Any:
        """Return what the last step makes of `inputs`."""
        for step in self.steps:
            inputs = step(inputs)
        return inputs

    def __repr__(self) -> str:
        return f"Compose({', '.join(map(repr, self.steps))})"
