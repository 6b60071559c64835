"""What a storage policy is, and what it may ask for."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from recollect.choices import MarginTiming
from recollect.memory import Memory


@dataclass(frozen=True)
class Placement:
    """The slots that a storage policy gives to admitted newcomers.

    Attributes:
        slots: One per admitted newcomer, in order; -1 rejects it. Free slots are taken in order,
            `len(memory)` first. Where two newcomers name a slot the later one keeps it.
        scores: What to write to the memory's `score` column for each newcomer. None writes 0.
        stored_scores: Likewise for the slots filled so far, as the decision saw them. None leaves
            the column as it is.
    """

    slots: Int64[Tensor, " admitted"]
    scores: Float[Tensor, " admitted"] | None = None
    stored_scores: Float[Tensor, " filled"] | None = None


@runtime_checkable
class Evidence(Protocol):
    """Measurements of the newcomers, made when a storage policy calls for them."""

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

    A policy never sees the model. Facts about slots are columns of the memory; measurements come as
    `Evidence`. `admit` is called before the model learns from the batch, so that measurements
    before the step are made for admitted newcomers only. `place` is called after it.
    """

    #: A policy that reads `evidence.margin_increments` or the memory's column says when to measure.
    margins: MarginTiming = "never"
    #: Between which numbers its scores lie; a checkpoint with others is refused.
    score_range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    #: Whether it writes scores that mean something; the records of a run keep them then.
    has_scores: ClassVar[bool] = True
    #: Whether it may draw from torch's own generator, and not only from the one it is given. The
    #: learner then looks after torch's.
    draws: ClassVar[bool] = True
    #: Whether labels must be classes.
    needs_classes: ClassVar[bool] = False
    #: Whether `place` asks for evidence. One that does not is asked before the model moves, which
    #: spares the learner a copy of the weights.
    needs_evidence: ClassVar[bool] = True

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
        """Give each admitted newcomer a slot, in order, or reject it.

        Args:
            labels: Labels of the admitted newcomers.
            memory: To read; the learner writes.
            evidence: Measurements, made when called for.
            rng: All randomness comes from here.
        """

    def state(self) -> dict[str, Tensor]:
        """Return what the policy keeps between steps, as tensors. Default: nothing."""
        return {}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Take back what `state` returned."""
        if state:
            raise ValueError(f"{type(self).__name__} keeps no state, but got {sorted(state)}.")
