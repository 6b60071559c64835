"""The classes that the stream has shown so far."""

from collections.abc import Callable, Iterable

import torch
from jaxtyping import Int64
from torch import Tensor


class ClassesSeen:
    """A growing set of classes, for objectives that ask for it.

    Attributes:
        numbers: The classes, in ascending order.
    """

    def __init__(self) -> None:
        self.numbers: Int64[Tensor, " classes"] = torch.empty(0, dtype=torch.int64)

    def add(self, labels: Tensor) -> None:
        """Note the classes of a batch."""
        self.numbers = torch.unique(torch.cat((self.numbers, labels.cpu().long())))

    def take(self, numbers: Iterable[int]) -> None:
        """Take over what was saved."""
        self.numbers = torch.tensor(sorted(numbers), dtype=torch.int64)

    def way_back(self) -> Callable[[], None]:
        """Return what forgets the classes that are noted from here on."""
        numbers = self.numbers

        def put_back() -> None:
            self.numbers = numbers

        return put_back
