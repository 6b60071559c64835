"""Margin increments (MI): who is measured, and when, is the storage policy's choice (note P5)."""

from functools import partial

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from recollect.memory import Memory
from recollect.metrics.margins import margins
from recollect.network.batch import Batch, stored_batch
from recollect.network.checks import check_logits
from recollect.network.network import Network
from recollect.rollback.transaction import Transaction
from recollect.storage import MarginTiming

_NOTHING = torch.empty(0)


class MarginWatch:
    """Take margins before and after what a policy wants measured, and nothing else.

    Margins are taken in evaluation mode, each example on its own, with the same draws every time,
    so that BatchNorm's statistics, dropout and augmentation do not pass for learning.

    Args:
        network: The model.
        memory: Its `margin_increment` column receives what is measured of stored examples.
        timing: When to measure.
        incoming: The batch, before the step.
        admitted: Which of it ask for a slot.
        transaction: Gets the way back for every change of the column.
    """

    def __init__(
        self,
        network: Network,
        memory: Memory,
        timing: MarginTiming,
        incoming: Batch,
        admitted: Int64[Tensor, " admitted"],
        transaction: Transaction,
    ) -> None:
        newcomers = incoming.take(admitted)
        self._admitted = admitted
        self._network, self._memory = network, memory
        self._timing, self._newcomers, self._transaction = timing, newcomers, transaction
        self._newcomers_before = self._stored_before = self._replayed_before = _NOTHING
        self._logits_before: Tensor | None = None
        self._draws = network.same_draws()
        # In a mode-free network the training pass gives the same outputs: see `learnt_from`.
        if timing in ("insertion", "both", "all") and len(newcomers) and not network.is_mode_free:
            self._newcomers_before = self._margins(newcomers)
        if timing == "all" and len(memory) and self._will_replace():
            self._stored_before = self._stored_margins()

    def before_update(self, slots: Int64[Tensor, " replayed"]) -> None:
        """Take margins of what is about to be replayed."""
        if self._watches(slots) and not self._network.is_mode_free:
            self._replayed_before = self._margins_in(slots)

    def learnt_from(self, outputs: object, slots: Int64[Tensor, " replayed"]) -> None:
        """Take margins from the pass that is about to teach the model, where it gives the same.

        Those of the newcomers the first time, and of what is replayed.

        Args:
            outputs: Of the incoming examples and, behind them, the replayed ones.
            slots: Of the replayed ones.
        """
        is_known = self._newcomers_before.numel() or self._logits_before is not None
        asks_newcomers = self._timing != "replay" and not is_known and len(self._newcomers)
        asks_replayed = self._watches(slots) and self._network.is_mode_free
        if not (asks_newcomers or asks_replayed):
            return
        if self._network.augments or self._draws.have_begun():
            # The pass was augmented, and margins are not taken so.
            if asks_newcomers:
                self._newcomers_before = self._margins(self._newcomers)
            if asks_replayed:
                self._replayed_before = self._margins_in(slots)
            return
        if not isinstance(outputs, Tensor):
            raise TypeError(
                "the storage policy measures margins, but the model's outputs are not one tensor "
                "with one row per example; return a (examples, classes) tensor of logits."
            )
        if asks_newcomers:
            self._logits_before = outputs.index_select(0, self._admitted.to(outputs.device))
        if asks_replayed:
            labels = self._memory.labels[slots.to(self._memory.device)].to(outputs.device).long()
            logits = outputs[outputs.shape[0] - slots.shape[0] :]
            self._replayed_before = margins(logits, labels).float().cpu()

    def _watches(self, slots: Int64[Tensor, " replayed"]) -> bool:
        return self._timing in ("replay", "both") and slots.shape[0] > 0

    def after_update(self, slots: Int64[Tensor, " replayed"]) -> None:
        """Note the increments of what was replayed."""
        if self._watches(slots):
            self._note(slots, self._margins_in(slots) - self._replayed_before)

    def after_step(self) -> Float[Tensor, " admitted"] | None:
        """Return the increments of the newcomers, if they are measured."""
        if self._stored_before.numel():
            slots = torch.arange(len(self._stored_before))
            self._note(slots, self._stored_margins() - self._stored_before)
        if self._timing not in ("insertion", "both", "all") or not len(self._newcomers):
            return None
        if self._logits_before is not None:
            return self._newcomers_increments(self._logits_before)
        return self._margins(self._newcomers) - self._newcomers_before

    def _newcomers_increments(self, before: Tensor) -> Float[Tensor, " admitted"]:
        """Take the margins before and after at once."""
        after = self._logits(self._newcomers)
        labels = self._newcomers.labels.to(after.device).long()
        both = margins(torch.cat((before, after)), torch.cat((labels, labels))).float().cpu()
        return both[len(self._newcomers) :] - both[: len(self._newcomers)]

    def _will_replace(self) -> bool:
        return len(self._memory) + len(self._newcomers) > self._memory.capacity

    def _note(self, slots: Int64[Tensor, " slots"], increments: Float[Tensor, " slots"]) -> None:
        column = self._memory.margin_increment
        self._transaction.on_failure(partial(column.index_copy_, 0, slots, column[slots]))
        column[slots] = increments

    def _stored_margins(self) -> Float[Tensor, " slots"]:
        everything = torch.split(torch.arange(len(self._memory)), 256)
        return torch.cat([self._margins_in(slots) for slots in everything])

    def _margins_in(self, slots: Int64[Tensor, " slots"]) -> Float[Tensor, " slots"]:
        return self._margins(stored_batch(self._memory, slots))

    def _margins(self, batch: Batch) -> Float[Tensor, " examples"]:
        logits = self._logits(batch)
        return margins(logits, batch.labels.to(logits.device).long()).float().cpu()

    def _logits(self, batch: Batch) -> Float[Tensor, "examples classes"]:
        with self._draws:
            return check_logits(self._network.predict(batch.inputs), batch.labels)
