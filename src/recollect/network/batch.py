"""Examples on their way through a step."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
        is_replayed: Whether each example comes from memory; None stands for none of them.
        columns: What parts keep of those that do, a row for each.
    """

    inputs: object
    labels: Tensor
    versions: list[int] | None = None
    trains: bool = False
    ids: list[Id] | None = None
    weights: Float[Tensor, " examples"] | None = None
    is_replayed: tuple[bool, ...] | None = None
    columns: Mapping[str, Tensor] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.labels.shape[0]  # len(tensor) is four times slower

    def take(self, indices: Int64[Tensor, " taken"]) -> "Batch":
        """Return the examples at `indices`."""
        if indices.shape[0] == len(self):  # ascending and distinct: everybody, in order
            return self
        labels = self.labels.index_select(0, indices.to(self.labels.device))
        weights = None if self.weights is None else self.weights[indices.to(self.weights.device)]
        is_replayed, columns = self.is_replayed, self.columns
        if is_replayed is not None:
            # Only batches of one origin are taken apart, so rows are those of the examples.
            is_replayed = is_replayed[: len(indices)]
            columns = {name: rows[indices] for name, rows in columns.items()}
        return Batch(
            nested.take(self.inputs, indices),
            labels,
            weights=weights,
            is_replayed=is_replayed,
            columns=columns,
        )

    def to(self, device: torch.device) -> "Batch":
        """Return the examples on `device`."""
        if self.labels.device == device and all(
            leaf.device == device for leaf in nested.tensors(self.inputs)
        ):
            return self
        inputs = nested.map_leaves(lambda leaf: leaf.to(device), self.inputs)
        weights = None if self.weights is None else self.weights.to(device)
        return replace(
            self,
            inputs=inputs,
            labels=self.labels.to(device),
            weights=weights,
            versions=None,
            ids=None,
        )

    def followed_by(self, other: "Batch") -> "Batch":
        """Put `other` behind, on an accelerator if one of them is there."""
        labels = torch.cat(nested.on_one_device(self.labels, other.labels))
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
        is_replayed = None
        if self.is_replayed is not None or other.is_replayed is not None:
            is_replayed = self.origins + other.origins
        columns = self.columns or other.columns
        if self.columns and other.columns:
            columns = {
                name: torch.cat((rows, other.columns[name])) for name, rows in self.columns.items()
            }
        return Batch(
            inputs,
            labels,
            trains=trains,
            weights=weights,
            is_replayed=is_replayed,
            columns=columns,
        )

    @property
    def origins(self) -> tuple[bool, ...]:
        """Whether each example comes from memory."""
        return self.is_replayed or (False,) * len(self)

    def training(self) -> "Batch":
        """Return the same examples on their way through a pass that trains the model."""
        return replace(self, trains=True)


def stored_batch(memory: Memory, slots: Int64[Tensor, " slots"]) -> Batch:
    """Read the examples in `slots`, with their weights if any has one, and what parts keep."""
    inputs, labels = memory.read(slots)
    columns = {name: memory.declared(name, slots) for name in memory.declared_names}
    return Batch(
        inputs,
        labels,
        weights=columns.pop(WEIGHT, None),
        is_replayed=(True,) * len(slots),
        columns={name: rows for name, rows in columns.items() if rows is not None},
    )


def versions_of(inputs: object) -> list[int]:
    """How often each tensor was written to; one made in inference mode does not count."""
    return [0 if leaf.is_inference() else leaf._version for leaf in nested.tensors(inputs)]
