"""What a storage policy is, and what it may ask for."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from recollect.memory import Memory

# When margin increments are measured (paper note P5).
MarginTiming = Literal["never", "insertion", "replay", "both", "all"]


@dataclass(frozen=True)
class Placement:
    """A storage policy's answer.

    Attributes:
        slots: One an admitted newcomer, in order; -1 turns it away. Free slots are taken in order,
            `len(memory)` first. Where two newcomers name a slot the later one keeps it.
        scores: What to note in the memory's `score` column for each newcomer. None notes 0.
        stored_scores: Likewise for the slots filled so far, as the decision saw them. None leaves
            the column as it is.
    """

    slots: Int64[Tensor, " admitted"]
    scores: Float[Tensor, " admitted"] | None = None
    stored_scores: Float[Tensor, " filled"] | None = None


@runtime_checkable
class Evidence(Protocol):
    """What the learner can tell a storage policy about the newcomers, on demand."""

    def margin_increments(self) -> Float[Tensor, " admitted"]:
        """M after minus m before the step that learnt each admitted newcomer (MI)."""

    def cosines(
        self, slots: Int64[Tensor, "batches size"]
    ) -> tuple[Float[Tensor, "admitted batches"], Float[Tensor, " batches"]]:
        """Cosines between newcomers' gradients and those of batches of slots.

        First of each admitted newcomer on its own, then of the mean of all admitted newcomers.
        """

    def point_against(self, slots: Int64[Tensor, "batches size"]) -> bool:
        """Whether the newcomers' mean gradient points against that of every batch of slots.

        Measures no more batches than it takes to say no.
        """


class Storage(ABC):
    """Decide which newcomers enter the memory and which slots they take.

    A policy never sees the model. Per-slot facts are columns of the memory; what must be measured
    comes as `Evidence`. `admit` is asked before the model learns from the batch, so that whatever
    has to be measured before the step is measured for admitted newcomers only; `place` after.
    """

    #: A policy that reads `evidence.margin_increments` or the memory's column says when to measure.
    margins: MarginTiming = "never"
    #: Whether labels must be classes.
    needs_classes: ClassVar[bool] = False

    def admit(
        self,
        labels: Tensor,
        memory: Memory,  # noqa: ARG002
        rng: torch.Generator,  # noqa: ARG002
    ) -> Int64[Tensor, " admitted"]:
        """Return the indices, ascending, of the newcomers that ask for a slot. Default: all."""
        return torch.arange(len(labels))

    @abstractmethod
    def place(
        self,
        labels: Tensor,
        memory: Memory,
        evidence: Evidence,
        rng: torch.Generator,
    ) -> Placement:
        """Give each admitted newcomer a slot, in order, or turn it away.

        Args:
            labels: Labels of the admitted newcomers.
            memory: To read; the learner writes.
            evidence: Measurements, made when asked for.
            rng: All randomness comes from here.
        """

    def state(self) -> dict[str, Tensor]:
        """Return what the policy remembers between steps, as tensors. Default: nothing."""
        return {}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Take back what `state` returned."""
        if state:
            raise ValueError(f"{type(self).__name__} keeps no state, but got {sorted(state)}.")
