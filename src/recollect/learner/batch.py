"""Examples on their way through a step."""

from dataclasses import dataclass

import torch
from jaxtyping import Int64
from torch import Tensor

from recollect import nested


@dataclass(slots=True)
class Batch:
    """Inputs in stored form and their labels.

    `versions` are those of inputs that belong to the caller, and must stay as they came.
    """

    inputs: object
    labels: Tensor
    versions: list[int] | None = None

    def __len__(self) -> int:
        return self.labels.shape[0]  # len(tensor) is four times slower

    def take(self, indices: Int64[Tensor, " taken"]) -> "Batch":
        """Return the examples at `indices`."""
        if indices.shape[0] == len(self):  # ascending and distinct: everybody, in order
            return self

        def chosen(leaf: Tensor) -> Tensor:
            return leaf.index_select(0, indices.to(leaf.device))

        return Batch(nested.map_leaves(chosen, self.inputs), chosen(self.labels))

    def followed_by(self, other: "Batch") -> "Batch":
        """Put `other` behind, on this batch's devices."""
        labels = torch.cat((self.labels, other.labels.to(self.labels.device)))
        return Batch(nested.concat(self.inputs, other.inputs), labels)


def versions_of(inputs: object) -> list[int]:
    """How often each tensor was written to; one made in inference mode does not count."""
    return [0 if leaf.is_inference() else leaf._version for leaf in nested.leaves(inputs)]
