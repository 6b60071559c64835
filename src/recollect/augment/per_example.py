"""Give each example a draw of its own."""

from collections.abc import Callable
from typing import final

import torch
from torch import Tensor


@final
class PerExample:
    """Call a transform once per example, for those that draw once per call.

    `torchvision.transforms.v2` crops and flips all images of a batch alike; in here it treats each
    image on its own.

    Example:
        >>> PerExample(lambda image: image.flip(-1))(torch.eye(2).expand(3, 1, 2, 2)).shape
        torch.Size([3, 1, 2, 2])
    """

    def __init__(self, transform: Callable[[Tensor], Tensor]) -> None:
        self.transform = transform

    def __call__(self, inputs: Tensor) -> Tensor:
        """Return the transformed examples, stacked again."""
        return torch.stack([self.transform(example) for example in inputs])

    def __repr__(self) -> str:
        return f"PerExample({self.transform!r})"
