"""The learner: one batch in, one step done."""

import os
from functools import partial
from operator import index
from typing import Any, Final, SupportsIndex

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from recollect.checkpoint import read_checkpoint, write_checkpoint
from recollect.gradients import Measurement
from recollect.learner.batch import Batch, versions_of
from recollect.learner.checks import (
    check_gradients,
    check_gram,
    check_untouched,
    checked_admitted,
    checked_batch,
    checked_slots,
    checked_weights,
)
from recollect.learner.descent import descend, is_plain_sgd
from recollect.learner.margin_watch import MarginWatch
from recollect.learner.network import Loss, Network, Transform, Weighs
from recollect.learner.passes import (
    Found,
    IncomingPass,
    Passes,
    check_passes,
    check_weighs,
    find_gradients,
)
from recollect.learner.placing import NOTHING_WRITTEN, Written, written_slots
from recollect.learner.randomness import DrawingFrom, derived_generator
from recollect.learner.report import StepReport, Update
from recollect.learner.scoring import NewcomerEvidence, VirtualStepProbe
from recollect.learner.snapshot import Snapshot
from recollect.learner.state import learner_checkpoint, restore_learner
from recollect.learner.transaction import Transaction
from recollect.memory import Memory
from recollect.retrieval import Retrieval, Uniform
from recollect.rules import GradientSum, Rule
from recollect.storage import Reservoir, Storage

_NO_SLOTS: Final = torch.empty(0, dtype=torch.int64)


class Learner:
    """Learn from a stream of `(inputs, labels)` that comes once, and do not forget.

    One `observe` is: the batch arrives, retrieval picks slots to replay, their gradients are
    measured, the rule weighs them, the optimizer steps, storage places newcomers in memory. It
    happens whole or not at all: a call that raises leaves model, optimizer, memory and randomness
    as they were, to the bit. Under `torch.autocast` the model's passes and losses run in half
    precision, and nothing else does.

    Args:
        model: Any module that maps inputs to logits, or to anything that `loss` takes. It is
            trained in the mode it is in; keep it in `train()`. Layers may be replaced between two
            steps, as in widening the head, if the optimizer is given their parameters.
        optimizer: Any `torch.optim` optimizer over the model's parameters. Parameters it does not
            hold are treated as frozen.
        memory: Where examples are kept. None learns from the incoming batch alone (VAN).
        storage: Which slot a newcomer takes. Default `Reservoir()`.
        retrieval: Which slots are replayed. Default `Uniform(replay=10)`, fewer if the memory is
            smaller.
        rule: How gradients become one update. Default `GradientSum()`.
        loss: `loss(outputs, labels)` with one value an example. Default cross entropy on logits.
        transform: Stored form to model input, on the model's device; for instance uint8 images to
            floats. It must not work in place: the memory keeps what arrived.
        iterations: Updates per incoming batch, each with slots of its own.
        passes: How examples go through the network, which matters under BatchNorm (note P12):
            `"joint"`, incoming and replayed in one pass; `"separate"`, one after the other, as the
            paper's lineage does; `"grouped"`, one pass for the incoming batch and one for each of
            the rule's `groups`.
        weighs: What a rule's weights multiply where BatchNorm mixes examples (note P8):
            `"losses"`, the update is then a gradient, for one more backward pass; or
            `"contributions"`, each example's share of the batch's gradient, which is faster and
            learns badly. Elsewhere both are the same, and nothing is paid.
        seed: All of the learner's randomness follows from it.

    Example:
        >>> from recollect.models import mlp, seeded
        >>> model = seeded(lambda: mlp(4, 2), 0)
        >>> learner = Learner(model, torch.optim.SGD(model.parameters(), lr=0.1), memory=Memory(8))
        >>> report = learner.observe(torch.zeros(3, 4), torch.tensor([0, 1, 0]))
        >>> report.seen, learner.memory.counts_by_class()
        (3, {0: 2, 1: 1})
    """

    def __init__(  # noqa: PLR0913 - each is one free choice, and all have defaults
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        memory: Memory | None = None,
        storage: Storage | None = None,
        retrieval: Retrieval | None = None,
        rule: Rule | None = None,
        loss: Loss | None = None,
        transform: Transform | None = None,
        iterations: int = 1,
        passes: Passes = "joint",
        weighs: Weighs = "losses",
        seed: int = 0,
    ) -> None:
        if memory is None and (storage is not None or retrieval is not None):
            raise ValueError(
                "`memory` is None, but a storage or retrieval was given; add a memory."
            )
        if memory is not None:
            storage = Reservoir() if storage is None else storage
            retrieval = Uniform(min(10, memory.capacity)) if retrieval is None else retrieval
            if retrieval.replay > memory.capacity:
                raise ValueError(
                    f"`replay` is {retrieval.replay}, but the memory has {memory.capacity} slots; "
                    "replay at most as many examples as it can hold."
                )
        rule = GradientSum() if rule is None else rule
        if isinstance(iterations, bool) or not isinstance(iterations, int) or iterations < 1:
            raise ValueError(f"`iterations` is {iterations!r}; pass a whole number from 1.")
        check_passes(passes, rule)
        check_weighs(weighs)
        if isinstance(seed, bool) or not isinstance(seed, SupportsIndex):
            raise TypeError(f"`seed` is {seed!r}; pass a whole number.")
        if isinstance(optimizer, torch.optim.LBFGS):
            raise TypeError("`optimizer` is LBFGS, which evaluates the loss itself; use another.")
        self.model: Final = model
        self.optimizer: Final = optimizer
        self.memory = memory
        self.storage: Final = storage
        self.retrieval: Final = retrieval
        self.rule: Final = rule
        self.iterations: Final = iterations
        self.passes: Final = passes
        self.weighs: Final = weighs
        self.step = 0
        self.seen = 0
        # Storage, retrieval and the model (dropout) draw from generators of their own: learners
        # with the same seed store the same examples whatever their rule draws.
        self.generators: Final = {
            purpose: derived_generator(index(seed), purpose)
            for purpose in ("storage", "retrieval", "model")
        }
        self._network: Final = Network(
            model, optimizer, loss=loss, transform=transform, weighs=weighs
        )
        self._snapshot = Snapshot(model, optimizer)
        # Parts of the library draw from the generators they are given; others may do as they like.
        others = [
            part
            for part in (storage, retrieval, rule)
            if part is not None and not type(part).__module__.startswith("recollect.")
        ]
        self._others_may_draw: Final = bool(others)

    # --- the step ---------------------------------------------------------------------------------

    def observe(self, inputs: object, labels: Tensor) -> StepReport:
        """Learn from one incoming batch and let its examples ask for slots in memory.

        Args:
            inputs: A tensor, or a tuple, list or dict of tensors, first dimension examples. Several
                tensors become several arguments of the model, by position or by name.
            labels: One an example.

        Returns:
            What was done.

        Raises:
            ValueError, TypeError: the batch, or what the model made of it, breaks a rule; see the
                message. Nothing was changed.
            NonFiniteError: an input, loss or gradient is NaN or infinite. Nothing was changed.
        """
        incoming = self._checked(inputs, labels)
        with self._network.in_full_precision(), self._all_or_nothing() as transaction:
            admitted = self._admit(incoming)
            self._make_room(incoming, admitted, transaction)
            margins = self._watch_margins(incoming, admitted, transaction)
            if not self._ends_with_the_update(admitted):
                transaction.keep_weights()
            updates = tuple(
                [self._update(incoming, margins, transaction) for _ in range(self.iterations)]
            )
            written = self._store(incoming, admitted, margins)
        self.step += 1
        self.seen += len(incoming)
        return StepReport(self.step, self.seen, updates, written)

    def _update(
        self, incoming: Batch, margins: MarginWatch | None, transaction: Transaction
    ) -> Update:
        """Move the model once: retrieve, measure, weigh, step."""
        alone = IncomingPass(
            self._network, incoming, passes=self.passes, measured=self.rule.needs_gram
        )
        slots = self._retrieve(alone)
        if margins is not None:
            margins.before_update(slots)
        found = self._find_gradients(incoming, slots, alone)
        if margins is not None:
            margins.learnt_from(found.outputs)
        gram, weights, target = self._weigh(found)
        check_untouched(incoming.inputs, incoming.versions)
        self._descend(target, transaction)
        if self.memory is not None:
            self.memory.clock += 1
            if slots.numel():
                self.memory.mark_replayed(slots)
                transaction.on_failure(partial(self.memory.mark_replayed, slots, times=-1))
        if margins is not None:
            margins.after_update(slots)
        return Update(found.losses, found.outputs, slots, len(incoming), gram, weights)

    def _retrieve(self, alone: IncomingPass) -> Int64[Tensor, " replayed"]:
        """WHICH SLOTS are replayed."""
        if self.memory is None or self.memory.is_empty or self.retrieval is None:
            return _NO_SLOTS
        probe = VirtualStepProbe(self._network, self.memory, self.optimizer, alone)
        slots = self.retrieval.select(self.memory, probe, self.generators["retrieval"])
        return checked_slots(slots, self.memory, self.retrieval)

    def _find_gradients(
        self, incoming: Batch, slots: Int64[Tensor, " replayed"], alone: IncomingPass
    ) -> Found:
        """MEASURE g and the g_i."""
        if self.memory is None or slots.numel() == 0:
            return alone.only()
        replayed = Batch(*self.memory.read(slots))
        return find_gradients(self._network, incoming, replayed, alone, self.rule)

    def _weigh(self, found: Found) -> tuple[Tensor | None, Tensor | None, dict[str, Tensor]]:
        """WEIGH them into w, unless the rule's weights are fixed: then w was taken at once."""
        if not isinstance(found.gradients, Measurement):
            return None, None, found.gradients
        with torch.no_grad():
            gram = check_gram(found.gradients.gram())
            weights = checked_weights(self.rule(gram), gram, self.rule)
            return gram, weights, found.gradients.combine(weights)

    def _descend(self, target: dict[str, Tensor], transaction: Transaction) -> None:
        """Let the optimizer step along w."""
        check_gradients(target)
        if not is_plain_sgd(self.optimizer):
            transaction.keep_weights()
        transaction.before_weights_move()
        descend(self.optimizer, self._network.parameters, target)

    def _admit(self, incoming: Batch) -> Int64[Tensor, " admitted"]:
        """WHO asks for a slot; decided before the step, so that only they are measured."""
        if self.memory is None or self.storage is None:
            return _NO_SLOTS
        admitted = self.storage.admit(incoming.labels, self.memory, self.generators["storage"])
        return checked_admitted(admitted, len(incoming), self.storage)

    def _make_room(
        self, incoming: Batch, admitted: Int64[Tensor, " admitted"], transaction: Transaction
    ) -> None:
        """Take the memory's bytes before the model moves: there may not be that many."""
        if self.memory is None or not self.memory.is_empty or not admitted.numel():
            return
        if self.memory.make_room(incoming.inputs, incoming.labels):
            transaction.on_failure(self.memory.give_back_room)

    def _store(
        self, incoming: Batch, admitted: Int64[Tensor, " admitted"], margins: MarginWatch | None
    ) -> Written:
        """WHICH SLOT each admitted newcomer takes."""
        if self.memory is None or self.storage is None:
            return NOTHING_WRITTEN
        memory = self.memory
        increments = None if margins is None else margins.after_step()
        written = NOTHING_WRITTEN
        if admitted.numel():
            evidence = NewcomerEvidence(self._network, memory, incoming, admitted, increments)
            rng = self.generators["storage"]
            placement = self.storage.place(incoming.labels[admitted], memory, evidence, rng)
            written = written_slots(placement, memory, admitted)
            check_untouched(incoming.inputs, incoming.versions)
            written.commit(memory, incoming, placement, increments)
        memory.seen += len(incoming)
        return written

    # --- looking and keeping ----------------------------------------------------------------------

    def predict(self, inputs: object, *, batch_size: int | None = None) -> Any:
        """Return the model's outputs in evaluation mode; model, memory and randomness stay as is.

        A tensor of logits, or whatever else the model returns; in several passes, tensors of a row
        an example only.

        Args:
            inputs: In stored form, as for `observe`.
            batch_size: Examples per pass; None passes all at once.
        """
        self._notice_changes()
        versions = versions_of(inputs)
        with DrawingFrom(self.generators["model"], self._network.device, advance=False):
            outputs = self._network.predict(inputs, batch_size=batch_size)
        check_untouched(inputs, versions)
        return outputs

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write model, optimizer, memory, counters and generators to one file, whole or not."""
        write_checkpoint(path, learner_checkpoint(self))

    def load(self, path: str | os.PathLike[str]) -> None:
        """Continue from `path`, bit for bit, in a learner built as the saved one was.

        Raises:
            CheckpointError: the file is damaged, altered or of another learner. Nothing changed.
        """
        restore_learner(self, read_checkpoint(path))

    # --- guards -----------------------------------------------------------------------------------

    def _checked(self, inputs: object, labels: object) -> Batch:
        if not torch.is_grad_enabled():
            raise ValueError("gradients are switched off; call `observe` outside `no_grad`.")
        self._notice_changes()
        self._network.check_trains()
        if not self.model.training:
            raise ValueError(
                "the model is in evaluation mode; call `model.train()` before `observe`. To "
                "evaluate, use `predict`, which needs no switching."
            )
        who = None
        if self._network.classifies:
            who = "the default cross entropy loss"
        elif self.storage is not None and self.storage.needs_classes:
            who = type(self.storage).__name__
        batch = checked_batch(inputs, labels, classes=who)
        if self.memory is not None:
            self.memory.check_fits(batch.inputs, batch.labels)
        self._network.settle_memory_order(batch.inputs)
        return batch

    def _notice_changes(self) -> None:
        """Take the model as it is now: its head may have been widened, or a part frozen."""
        if self._network.notice_changes():
            self._snapshot = Snapshot(self.model, self.optimizer)

    def _ends_with_the_update(self, admitted: Int64[Tensor, " admitted"]) -> bool:
        """Whether nothing that could raise is left behind one checked update."""
        if self.iterations > 1:
            return False
        if self.storage is None or type(self.storage) is Reservoir:
            return True
        return not admitted.numel() and self.storage.margins in ("never", "insertion")

    def _all_or_nothing(self) -> Transaction:
        may_draw = self._others_may_draw or self._network.may_draw
        device = self._network.device if may_draw else None
        return Transaction(self._snapshot, self.generators, self.memory, self.storage, device)

    def _watch_margins(
        self,
        incoming: Batch,
        admitted: Int64[Tensor, " admitted"],
        transaction: Transaction,
    ) -> MarginWatch | None:
        if self.memory is None or self.storage is None or self.storage.margins == "never":
            return None
        timing = self.storage.margins
        return MarginWatch(self._network, self.memory, timing, incoming, admitted, transaction)
