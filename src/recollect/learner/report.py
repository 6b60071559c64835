"""What a step did, as tensors and counts; formatting is for others."""

import html
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float, Int64
from torch import Tensor

from recollect import nested
from recollect.learner.placement import Written
from recollect.memory.slot import Id


@dataclass(frozen=True)
class Update:
    """One update of the model within a step.

    Attributes:
        losses: Loss of each example before the update: the incoming ones, then the replayed.
        outputs: What the model said about them, detached: a tensor, or a nesting of tensors. None
            if it answers with anything else, or not with one row per example.
        replayed_slots: Slots replayed, none while the memory is empty.
        num_incoming: How many of the examples are the incoming ones.
        gram: Inner products of (g, g_1..g_K), row 0 the incoming g. None unless the rule needs all
            of them or the learner was built with `measure_all=True`.
        weights: Weight of each of these gradients in the target gradient, where they were measured.
        row: <g, g_k> of these gradients and |g_k|^2, where the rule needed no more.
        target_norm: |w|, where gradients were measured.
    """

    losses: Float[Tensor, " examples"]
    outputs: Any
    replayed_slots: Int64[Tensor, " replayed"]
    num_incoming: int
    gram: Float[Tensor, "gradients gradients"] | None = None
    weights: Float[Tensor, " gradients"] | None = None
    row: Float[Tensor, "two gradients"] | None = None
    target_norm: float | None = None

    @property
    def incoming_losses(self) -> Float[Tensor, " incoming"]:
        """Loss of each incoming example before the update."""
        return self.losses[: self.num_incoming]

    @property
    def replayed_losses(self) -> Float[Tensor, " replayed"]:
        """Loss of each replayed example before the update."""
        return self.losses[self.num_incoming :]

    @property
    def incoming_outputs(self) -> Any:
        """What the model said about the incoming examples before the update, if it is known."""
        if self.outputs is None:
            return None
        return nested.map_leaves(lambda leaf: leaf[: self.num_incoming], self.outputs)

    @property
    def incoming_norm(self) -> float | None:
        """|g|, where it was measured."""
        squares = self._squared_lengths
        return None if squares is None else float(squares[0].clamp_min(0).sqrt())

    @property
    def replayed_norms(self) -> Float[Tensor, " gradients"] | None:
        """|g_i|, where they were measured."""
        squares = self._squared_lengths
        return None if squares is None else squares[1:].clamp_min(0).sqrt()

    @property
    def replayed_products(self) -> Float[Tensor, " gradients"] | None:
        """<g, g_i>, where they were measured."""
        if self.row is not None:
            return self.row[0, 1:]
        return None if self.gram is None else self.gram[0, 1:]

    @property
    def _squared_lengths(self) -> Float[Tensor, " gradients"] | None:
        if self.row is not None:
            return self.row[1]
        return None if self.gram is None else self.gram.diagonal()


@dataclass(frozen=True)
class StepReport:
    """What one call of `observe` did.

    Attributes:
        step: Number of this call, from 1.
        seen: Stream examples observed so far, this batch included.
        updates: One an iteration, in order.
        written: Which newcomers went where, and who made room.
        written_ids: Ids of the newcomers that were stored, as `written_slots` names their slots.
    """

    step: int
    seen: int
    updates: tuple[Update, ...]
    written: Written
    written_ids: list[Id]

    @property
    def loss(self) -> float:
        """Mean loss of the incoming batch before anything was learnt from it."""
        return float(self.updates[0].incoming_losses.mean())

    @property
    def replayed_slots(self) -> Int64[Tensor, " replayed"]:
        """Slots replayed by the last update."""
        return self.updates[-1].replayed_slots

    def __str__(self) -> str:
        replayed = sum(update.replayed_slots.shape[0] for update in self.updates)
        return (
            f"step {self.step}: {self.seen:,} seen, loss {self.loss:.3f}, {replayed} replayed, "
            f"{self.written.slots.shape[0]} stored, {len(self.evicted_ids)} made room"
        )

    def _repr_html_(self) -> str:
        """Show the step as a row in a notebook."""
        return f"<code>{html.escape(str(self))}</code>"

    @property
    def evicted_ids(self) -> list[Id]:
        """Ids of the examples that made room."""
        return self.written.evicted_ids

    @property
    def written_slots(self) -> Int64[Tensor, " written"]:
        """Slots that now hold a newcomer."""
        return self.written.slots
