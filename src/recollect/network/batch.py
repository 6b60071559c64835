"""Examples on their way through a step."""

from dataclasses import dataclass, replace
from typing import Final

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from recollect import nested
from recollect.memory import Memory
from recollect.memory.slot import Id

WEIGHT: Final = "weight"  # the memory column of what an example's loss is multiplied by


@dataclass(slots=True)
class Batch:
    """Inputs in stored form and their labels.

    Attributes:
        inputs: The examples.
        labels: One per example.
        versions: Those of inputs that belong to the caller, and must stay as they came.
        trains: Whether the pass they are on trains the model, so that they are augmented.
        ids: The caller's names for the examples of an incoming batch.
        weights: What each example's loss is multiplied by; None stands for ones.
    """

    inputs: object
    labels: Tensor
    versions: list[int] | None = None
    trains: bool = False
    ids: list[Id] | None = None
    weights: Float[Tensor, " examples"] | None = None

    def __len__(self) -> int:
        return self.labels.shape[0]  # len(tensor) is four times slower

    def take(self, indices: Int64[Tensor, " taken"]) -> "Batch":
        """Return the examples at `indices`."""
        if indices.shape[0] == len(self):  # ascending and distinct: everybody, in order
            return self
        labels = self.labels.index_select(0, indices.to(self.labels.device))
        weights = None if self.weights is None else self.weights[indices.to(self.weights.device)]
        return Batch(nested.take(self.inputs, indices), labels, weights=weights)

    def to(self, device: torch.device) -> "Batch":
        """Return the examples on `device`."""
        if self.labels.device == device and all(
            leaf.device == device for leaf in nested.tensors(self.inputs)
        ):
            return self
        inputs = nested.map_leaves(lambda leaf: leaf.to(device), self.inputs)
        weights = None if self.weights is None else self.weights.to(device)
        return Batch(inputs, self.labels.to(device), trains=self.trains, weights=weights)

    def followed_by(self, other: "Batch") -> "Batch":
        """Put `other` behind, on this batch's devices."""
        labels = torch.cat((self.labels, other.labels.to(self.labels.device)))
        inputs = nested.concat(self.inputs, other.inputs)
        trains, weights = self.trains and other.trains, None
        if self.weights is not None or other.weights is not None:
            parts = [
                torch.ones(len(part)) if part.weights is None else part.weights.cpu()
                for part in (self, other)
            ]
            weights = torch.cat(
                [part.to(torch.promote_types(*(p.dtype for p in parts))) for part in parts]
            )
        return Batch(inputs, labels, trains=trains, weights=weights)

    def training(self) -> "Batch":
        """Return the same examples on their way through a pass that trains the model."""
        return replace(self, trains=True)


def stored_batch(memory: Memory, slots: Int64[Tensor, " slots"]) -> Batch:
    """Read the examples in `slots`, with their weights if any has one."""
    inputs, labels = memory.read(slots)
    return Batch(inputs, labels, weights=memory.declared(WEIGHT, slots))


def versions_of(inputs: object) -> list[int]:
    """How often each tensor was written to; one made in inference mode does not count."""
    return [0 if leaf.is_inference() else leaf._version for leaf in nested.tensors(inputs)]
