"""The learner: one batch in, one step done."""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from operator import index
from typing import Any, Final, SupportsIndex

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from recollect.checkpoint import read_checkpoint, write_checkpoint
from recollect.choices import LEARNER, Measured, Passes, Weighs
from recollect.learner.checks import (
    check_fit,
    checked_admitted,
    checked_slots,
    fixed_weights,
    kept_rows,
)
from recollect.learner.describing import as_html, in_a_line
from recollect.learner.evidence import NewcomerEvidence, NoEvidence, VirtualStepProbe
from recollect.learner.fitting import make_it_fit
from recollect.learner.label_map import LabelMap
from recollect.learner.margins import MarginWatch
from recollect.learner.placement import NOTHING_WRITTEN, Written, written_slots
from recollect.learner.report import StepReport, Update
from recollect.learner.saved.rebuilding import rebuilt
from recollect.learner.saved.state import learner_checkpoint, memory_of, parts_of, restore_learner
from recollect.learner.view import ModelView, tensors_of
from recollect.learner.weighing import products_for, weigh
from recollect.memory import Codec, Memory
from recollect.memory.slot import Id
from recollect.models import GrowingHead
from recollect.network.batch import WEIGHT, Batch, stored_batch, versions_of
from recollect.network.checks import (
    check_plain,
    check_untouched,
    checked_batch,
    checked_example_weights,
    checked_ids,
)
from recollect.network.classes_seen import ClassesSeen
from recollect.network.descent import descend, is_plain_sgd, plain_sgd_step
from recollect.network.inputs.arrival import as_inputs, as_labels
from recollect.network.inputs.preparing import Collate, Preparation, Transform
from recollect.network.measured import check_measured
from recollect.network.network import Network
from recollect.network.passes import (
    Asked,
    Found,
    check_passes,
    check_weighs,
    find_gradients,
    planned_passes,
)
from recollect.network.runaway import (
    check_gradients,
    check_moved,
    check_rates,
    check_reach,
    check_statistics,
)
from recollect.network.ways.contract import Pass
from recollect.objectives import Objective
from recollect.objectives.loss import Loss, objective_of
from recollect.predictors import Logits, Predictor
from recollect.retrieval import Retrieval, Uniform
from recollect.rollback.generators import (
    derived_generator,
    generator_states,
    lend,
    lent_state,
    set_generator_states,
)
from recollect.rollback.snapshot import Snapshot
from recollect.rollback.surroundings import Surroundings
from recollect.rollback.transaction import Transaction
from recollect.rules import GradientSum, Rule
from recollect.storage import Evidence, Reservoir, Storage
from recollect.turns import Turns

_NO_SLOTS: Final = torch.empty(0, dtype=torch.int64)
#: More at once is rather a label that is no number of a class.
MOST_NEW_CLASSES: Final = 1000
_FOUND_ANEW: Final = ("_network", "_snapshot", "_turns", "_products")


class Learner:
    """Learn from a stream of `(inputs, labels)` that comes once, and do not forget.

    One `observe` is: the batch arrives, retrieval picks slots to replay, their gradients are
    measured, the rule weighs them, the optimizer steps, storage places newcomers in memory. It
    happens whole or not at all: a call that raises leaves model, optimizer, memory and randomness
    as they were, to the bit. So does an interrupt, unless everything was decided: then the step is
    completed first, and `step` says so. Other threads may `predict`, `save` and read the memory
    meanwhile; they wait for the end of the step.

    Under `torch.autocast` the model's passes and losses run in half precision, and nothing else.

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
        objective: What is asked of outputs, of incoming and of replayed examples. Default
            `CrossEntropy()`.
        loss: In its place `loss(outputs, labels)` with one value per example, or a loss module of
            torch's. Values of more dimensions are averaged per example.
        predictor: How `predict` answers. Default `Logits()`: what the model answers.
        label_map: Numbers classes, so that labels may be names. A `GrowingHead` in the model widens
            with them.
        transform: Stored form to model input, on the model's device; for instance uint8 images to
            floats, or a list of strings to tokens. It must not work in place: the memory keeps what
            arrived.
        collate: A list of examples to tensors, ahead of `transform`. Default: examples of differing
            length are padded with zeros (`recollect.pad`).
        augment: Changes model input at random while it trains: incoming and replayed examples,
            afresh for every update. Scores, margins and `predict` see examples as they are. What it
            draws from torch's generator follows from `seed`.
        iterations: Updates per incoming batch, each with slots of its own.
        passes: How examples go through the network, which matters under BatchNorm (note P12):
            `"joint"`, incoming and replayed in one pass; `"separate"`, one after the other, as the
            paper's lineage does; `"grouped"`, one pass for the incoming batch and one for each of
            the rule's `groups`.
        weighs: What a rule's weights multiply where BatchNorm mixes examples (note P8):
            `"losses"`, the update is then a gradient, for one more backward pass; or
            `"contributions"`, each example's share of the batch's gradient, which is faster and
            learns badly. Elsewhere both are the same, and nothing is paid.
        measured: Whose gradients enter inner products: `"all"`, the paper's reading; `"head"`,
            those of the last layer that is trained, for a fraction of the price; or names of layers
            and parameters. A rule's weights then multiply losses. All parameters are trained.
        measure_all: Measure and report the matrix of all inner products also where the rule needs
            no more than a row of it. It changes no update.
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
        objective: Objective | None = None,
        loss: Loss | None = None,
        predictor: Predictor | None = None,
        label_map: LabelMap | None = None,
        transform: Transform | None = None,
        collate: Collate | None = None,
        augment: Transform | None = None,
        iterations: int = 1,
        passes: Passes = "joint",
        weighs: Weighs = "losses",
        measured: Measured = "all",
        measure_all: bool = False,
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
        if objective is not None and loss is not None:
            raise ValueError(
                "`objective` and `loss` were both given; pass one of them. A loss is an objective "
                "that asks the same of incoming and replayed examples."
            )
        objective = objective_of(loss) if objective is None else objective
        predictor = Logits() if predictor is None else predictor
        check_fit(objective, predictor, storage, retrieval, passes=passes, augments=bool(augment))
        if isinstance(iterations, bool) or not isinstance(iterations, int) or iterations < 1:
            raise ValueError(f"`iterations` is {iterations!r}; pass a whole number from 1.")
        check_passes(passes, rule)
        check_weighs(weighs)
        check_measured(measured)
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
        self.objective: Final = objective
        self.predictor: Final = predictor
        self.iterations: Final = iterations
        self.passes: Final = passes
        self.weighs: Final = weighs
        self.measured: Final[Measured] = measured if isinstance(measured, str) else list(measured)
        self.measure_all: Final = measure_all
        self.step = 0
        self.seen = 0
        # Storage, retrieval and the model (dropout) draw from generators of their own: learners
        # with the same seed store the same examples whatever their rule draws.
        self.generators: Final = {
            purpose: derived_generator(index(seed), purpose)
            for purpose in ("storage", "retrieval", "model")
        }
        self._classes_seen: Final = ClassesSeen()
        self.label_map: Final = label_map
        self._preparation: Final = Preparation(collate, transform, augment)
        self._build()
        self._network.check_trains()
        parts = (storage, retrieval, rule)
        self._others_may_draw: Final = any(part is not None and part.draws for part in parts)

    def _build(self) -> None:
        """Find out all that follows from model and optimizer."""
        self._products = products_for(self.rule, measure_all=self.measure_all)
        self._network = Network(
            self.model,
            self.optimizer,
            objective=self.objective,
            transform=self._preparation.transform,
            collate=self._preparation.collate,
            augment=self._preparation.augment,
            weighs=self.weighs,
            classes_seen=self._classes_seen,
            measured=self.measured,
            products=self._products,
        )
        self._snapshot = Snapshot(self.model, self.optimizer)
        self._turns = Turns() if self.memory is None else self.memory.turns

    def __getstate__(self) -> dict[str, object]:
        """Leave out what follows from the rest: a copy finds it out anew."""
        return {k: v for k, v in vars(self).items() if k not in _FOUND_ANEW}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._build()

    def __repr__(self) -> str:
        return in_a_line(self)

    def _repr_html_(self) -> str:
        """Show the learner as a table in a notebook."""
        return as_html(self)

    # --- the step ---------------------------------------------------------------------------------

    def observe(
        self,
        inputs: object,
        labels: object,
        *,
        ids: Sequence[Id] | None = None,
        weights: object = None,
    ) -> StepReport:
        """Learn from one incoming batch and let its examples ask for slots in memory.

        Args:
            inputs: A tensor or an array, first dimension examples; a list of examples, of differing
                shape or strings, too; or a tuple or dict of these, which become several arguments
                of the model, by position or by name.
            labels: One per example: a tensor, an array or a list; names with a `label_map`.
            weights: What each example's loss is multiplied by, now and whenever it is replayed; 1
                without them.
            ids: Your names for the examples, numbers or strings, by which `learner.memory.find` and
                `forget` know them. Without them, which example of the stream each was, from 1.

        Returns:
            What was done.

        Raises:
            ValueError, TypeError: the batch, or what the model made of it, breaks a rule; see the
                message. Nothing was changed.
            NonFiniteError: an input, loss or gradient is NaN or infinite. Nothing was changed.
        """
        step = partial(self._step, inputs, labels, ids, weights)
        return self._turns.run(partial(Transaction().run, step))

    def _step(
        self,
        inputs: object,
        labels: object,
        ids: Sequence[Id] | None,
        weights: object,
        transaction: Transaction,
    ) -> StepReport:
        """Find out all that `observe` writes, and move what must be moved to find it out."""
        self._notice_changes()
        incoming = self._checked(inputs, self._numbered(labels, transaction))
        incoming.ids = checked_ids(ids, len(incoming))
        incoming.weights = checked_example_weights(weights, len(incoming), self._network.dtype)
        self._remember_storage(transaction)  # first, so put back last: it is a user's code
        self._make_room_for_classes(incoming.labels, transaction)
        self._note_classes(incoming.labels, transaction)
        self._remember_model(transaction)
        self._network.settle_memory_order(incoming.inputs)
        with self._network.in_full_precision():
            self._remember(transaction)
            admitted = self._admit(incoming)
            self._make_room(incoming, admitted)
            margins = self._watch_margins(incoming, admitted, transaction)
            moves_last = self._may_move_last(admitted)
            updates = tuple(
                [
                    self._update(incoming, margins, transaction, moves_last=moves_last)
                    for _ in range(self.iterations)
                ]
            )
            kept = self._rows_to_keep(incoming, updates[-1]) if admitted.shape[0] else {}
            written = self._place(incoming, admitted, margins, kept, transaction)
            if self.predictor.follows_weights:
                transaction.write(self.predictor.prepared(tensors_of(self.model)))
        self._count(len(incoming), transaction)
        names = incoming.ids or range(self.seen + 1, self.seen + len(incoming) + 1)
        written_ids = [names[example] for example in written.examples.tolist()]
        return StepReport(self.step + 1, self.seen + len(incoming), updates, written, written_ids)

    def _update(
        self,
        incoming: Batch,
        margins: MarginWatch | None,
        transaction: Transaction,
        *,
        moves_last: bool,
    ) -> Update:
        """Move the model once: retrieve, measure, weigh, step."""
        check_rates(self.optimizer)
        slots, passed = self._retrieve(incoming, transaction)
        if margins is not None:
            margins.before_update(slots)
        found = self._find_gradients(incoming, slots, passed)
        if margins is not None:
            margins.learnt_from(found.outputs, slots)
        weighed = weigh(self.rule, found, self._products)
        check_untouched(incoming.inputs, incoming.versions)
        length = self._descend(weighed.target, transaction, moves_last=moves_last)
        if self.memory is not None:
            self.memory.clock += 1
            if slots.shape[0]:
                transaction.on_failure(self.memory.way_back_from_replay(slots))
                self.memory.mark_replayed(slots)
        if margins is not None:
            margins.after_update(slots)
        is_measured = weighed.weights is not None
        return Update(
            *(found.losses, found.outputs, slots, len(incoming)),
            *(weighed.gram, weighed.weights, weighed.row, length if is_measured else None),
        )

    def _retrieve(
        self, incoming: Batch, transaction: Transaction
    ) -> tuple[Int64[Tensor, " replayed"], Pass | None]:
        """WHICH SLOTS are replayed, and the incoming pass if finding out took one."""
        if self.memory is None or self.memory.is_empty or self.retrieval is None:
            return _NO_SLOTS, None
        probe = VirtualStepProbe(
            *(self._network, self.memory, self.optimizer, incoming, transaction),
            passes=self.passes,
            measures=self.rule.needs != "nothing" and self.passes != "grouped",
            columns=self.retrieval.columns,
        )
        slots = self.retrieval.select(self.memory, probe, self.generators["retrieval"])
        return checked_slots(slots, self.memory, self.retrieval), probe.passed

    def _find_gradients(
        self, incoming: Batch, slots: Int64[Tensor, " replayed"], passed: Pass | None
    ) -> Found:
        """MEASURE g and the g_i."""
        replays = self.memory is not None and slots.shape[0] > 0
        replayed = stored_batch(self.memory, slots) if self.memory and replays else None
        plan = planned_passes(self.passes, replays=replays, is_incoming_passed=passed is not None)
        asked = Asked(fixed_weights(self.rule, slots.shape[0]), self.rule.groups)
        return find_gradients(self._network, plan, asked, incoming, replayed, passed)

    def _descend(
        self, target: dict[str, Tensor], transaction: Transaction, *, moves_last: bool
    ) -> float:
        """Let the optimizer step along w; return its length."""
        parameters = self._network.parameters
        is_plain = is_plain_sgd(self.optimizer)
        length = check_gradients(target)
        if is_plain:
            check_reach(self.optimizer, length)
        if moves_last:
            if not self._network.is_mode_free:
                check_statistics(self._network.with_statistics)
            transaction.write(plain_sgd_step(self.optimizer, parameters, target))
            return length
        if not transaction.keeps_weights:
            transaction.on_failure(self._snapshot.take_weights())
            transaction.keeps_weights = True
        descend(self.optimizer, parameters, target)
        if not is_plain:
            check_moved(self._network.with_statistics, parameters)
        elif not self._network.is_mode_free:
            check_statistics(self._network.with_statistics)
        return length

    def _admit(self, incoming: Batch) -> Int64[Tensor, " admitted"]:
        """WHO asks for a slot; decided before the step, so that only they are measured."""
        if self.memory is None or self.storage is None:
            return _NO_SLOTS
        admitted = self.storage.admit(incoming.labels, self.memory, self.generators["storage"])
        return checked_admitted(admitted, len(incoming), self.storage)

    def _make_room(self, incoming: Batch, admitted: Int64[Tensor, " admitted"]) -> None:
        """Take the memory's bytes before the model moves: there may not be that many."""
        if self.memory is None:
            return
        self._declare_columns(incoming)
        if not admitted.shape[0]:
            return
        if self.memory.is_empty:
            self.memory.make_room(incoming.inputs, incoming.labels)
        self.memory.loosen(incoming.inputs)
        if incoming.weights is not None:
            self.memory.declare(WEIGHT, incoming.weights, default=1.0)

    def _declare_columns(self, incoming: Batch) -> None:
        """Take room for what parts keep of stored examples, before slots are counted in bytes."""
        assert self.memory is not None
        if self.retrieval is not None:
            for column in self.retrieval.columns:
                self.memory.declare(column.name, torch.empty(1), default=column.default)
        known = self.memory.declared_names
        missing = [column for column in self.objective.columns if column.name not in known]
        if missing:
            rows = self._rows_of(incoming, self._network.glance(incoming))
            for column in missing:
                self.memory.declare(column.name, rows[column.name], default=column.default)

    def _rows_to_keep(self, incoming: Batch, update: Update) -> Mapping[str, Tensor]:
        """Return what the objective keeps of each newcomer, from the pass that taught it last."""
        if self.memory is None or not self.objective.columns:
            return {}
        rows = self._rows_of(incoming, update.incoming_outputs)
        for column in self.objective.columns:  # there may be more classes than at first
            self.memory.declare(column.name, rows[column.name], default=column.default)
        return rows

    def _rows_of(self, incoming: Batch, outputs: object) -> Mapping[str, Tensor]:
        return kept_rows(self.objective, outputs, incoming.labels)

    def _place(
        self,
        incoming: Batch,
        admitted: Int64[Tensor, " admitted"],
        margins: MarginWatch | None,
        kept: Mapping[str, Tensor],
        transaction: Transaction,
    ) -> Written:
        """WHICH SLOT each admitted newcomer takes."""
        if self.memory is None or self.storage is None:
            return NOTHING_WRITTEN
        memory = self.memory
        increments = None if margins is None else margins.after_step()
        if not admitted.shape[0]:
            return NOTHING_WRITTEN
        evidence: Evidence = NoEvidence()
        if self.storage.needs_evidence:
            evidence = NewcomerEvidence(self._network, memory, incoming, admitted, increments)
        rng = self.generators["storage"]
        placement = self.storage.place(incoming.labels[admitted], memory, evidence, rng)
        written = written_slots(placement, memory, admitted)
        check_untouched(incoming.inputs, incoming.versions)
        fit = make_it_fit(written, memory, incoming, placement.stored_scores, rng)
        if fit.dropping is not None:
            transaction.write(fit.dropping)
        known = placement.scores, fit.stored_scores, increments
        transaction.write(fit.written.prepared(memory, incoming, *known, kept))
        if fit.falling is not None:
            transaction.write(fit.falling)
        return fit.written

    # --- looking and keeping ----------------------------------------------------------------------

    def predict(self, inputs: object, *, batch_size: int | None = None) -> Any:
        """Return the model's outputs in evaluation mode; model, memory and randomness stay as is.

        A tensor of logits, or whatever else the model returns; in several passes, only tensors
        with one row per example.

        Args:
            inputs: In stored form, as for `observe`.
            batch_size: Examples per pass; None passes all at once.
        """
        answer = partial(self._predict, inputs, batch_size)
        return self._turns.run(partial(Transaction().run, answer))

    def _predict(self, inputs: object, batch_size: int | None, transaction: Transaction) -> object:
        self._notice_changes()
        inputs = self._taken(inputs)
        versions = versions_of(inputs)
        network, generator = self._network, self.generators["model"]
        self._remember_model(transaction)
        transaction.afterwards(partial(generator.set_state, generator.get_state()))
        self._lend_generator(transaction)
        moment = self.step, self.seen
        view = ModelView(network, self.memory, batch_size, moment, transaction)
        outputs = self.predictor(inputs, view)
        check_untouched(inputs, versions)
        return outputs

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write model, optimizer, memory, counters and generators to one file, whole or not."""
        self._turns.run(lambda: write_checkpoint(path, learner_checkpoint(self)))

    def load(self, path: str | os.PathLike[str], *, changed: Collection[str] = ()) -> None:
        """Continue from `path`, bit for bit, in a learner built as the saved one was.

        Args:
            path: A file that `save` wrote.
            changed: What this learner has otherwise on purpose: `"capacity"`, `"storage"`,
                `"retrieval"`, `"replay"`, `"rule"`, `"optimizer"`, `"iterations"`, `"passes"`,
                `"weighs"`, `"measured"`, `"objective"`, `"predictor"`. A smaller memory goes on
                with a uniform sample of the stored examples, a larger one with all of them; another
                storage, optimizer or predictor starts without what the saved one remembered.

        Raises:
            CheckpointError: the file is damaged, altered or of another learner. Nothing changed.
        """
        checkpoint = read_checkpoint(path)
        self._turns.run(lambda: restore_learner(self, checkpoint, changed))

    @classmethod
    def from_checkpoint(  # noqa: PLR0913 - each part may be one of the user's
        cls,
        path: str | os.PathLike[str],
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        storage: Storage | None = None,
        retrieval: Retrieval | None = None,
        rule: Rule | None = None,
        objective: Objective | None = None,
        predictor: Predictor | None = None,
        memory_device: torch.device | str = "cpu",
        codec: Codec | None = None,
        **options: Any,
    ) -> "Learner":
        """Build the learner that was saved, and continue from there.

        Memory, storage, retrieval, rule, objective and predictor are built as they were. Parts of
        your own, and what is code (`loss`, `transform`, `collate`, `augment`), must be passed.

        Args:
            path: A file that `save` wrote.
            model: Of the layers that the saved one had; its weights are loaded.
            optimizer: Over the model's parameters, of the kind that the saved one was.
            storage: In place of the saved one's, if that was your own.
            retrieval: Likewise.
            rule: Likewise.
            objective: Likewise.
            predictor: Likewise.
            memory_device: Where the examples live.
            codec: As for `Memory`.
            **options: `loss`, `transform`, `collate`, `augment`, as for `Learner`.
        """
        checkpoint = read_checkpoint(path)
        parts, memory = parts_of(checkpoint), memory_of(checkpoint, memory_device, codec)
        if memory is not None:
            if storage is None:
                storage = rebuilt("storage", parts["storage"])
            if retrieval is None:
                retrieval = rebuilt("retrieval", parts["retrieval"])
        learner = cls(
            model,
            optimizer,
            memory=memory,
            storage=storage,
            retrieval=retrieval,
            rule=rebuilt("rule", parts["rule"]) if rule is None else rule,
            objective=objective or rebuilt("objective", parts.get("objective", "none")),
            predictor=predictor or rebuilt("predictor", parts.get("predictor", "none")),
            label_map=LabelMap() if parts.get("label map") else None,
            **{name: parts[name] for name in LEARNER if name in parts},
            **options,
        )
        restore_learner(learner, checkpoint)
        return learner

    # --- guards -----------------------------------------------------------------------------------

    def _checked(self, inputs: object, labels: object) -> Batch:
        if not torch.is_grad_enabled():
            raise ValueError("gradients are switched off; call `observe` outside `no_grad`.")
        self._network.check_trains()
        if not self.model.training:
            raise ValueError(
                "the model is in evaluation mode; call `model.train()` before `observe`. To "
                "evaluate, use `predict`, which needs no switching."
            )
        who = None
        if self.objective.is_cross_entropy:
            who = "the default cross entropy loss"
        elif self.objective.needs_classes:
            who = type(self.objective).__name__
        elif self.storage is not None and self.storage.needs_classes:
            who = type(self.storage).__name__
        if isinstance(labels, Tensor):  # before anything else is asked of them
            check_plain("labels", labels)
        preparation = self._preparation
        are_transformed = preparation.collate is not None or preparation.transform is not None
        batch = checked_batch(
            *(self._taken(inputs, labels), labels), classes=who, are_transformed=are_transformed
        )
        if self.memory is not None:
            batch.labels = self.memory.as_stored(batch.labels)
            may_differ = preparation.collate is not None
            self.memory.check_fits(batch.inputs, batch.labels, may_differ=may_differ)
        return batch

    def _numbered(self, labels: object, transaction: Transaction) -> object:
        """Take labels as people have them, and number them if there is a map for that."""
        if self.label_map is None:
            return as_labels(labels, dtype=self._network.dtype)
        transaction.on_failure(self.label_map.way_back())
        if not isinstance(labels, Iterable):
            raise TypeError(f"`labels` is a {type(labels).__name__}; pass one name per example.")
        return self.label_map.encode(labels)

    def _note_classes(self, labels: Tensor, transaction: Transaction) -> None:
        """Note which classes have come, if the objective asks for them."""
        if self.objective.needs_classes_seen:
            transaction.on_failure(self._classes_seen.way_back())
            self._classes_seen.add(labels)

    def _make_room_for_classes(self, labels: Tensor, transaction: Transaction) -> None:
        """Widen a head that grows to the classes that have come."""
        head = self.head
        if head is None or labels.is_floating_point() or labels.ndim != 1:
            return
        wanted = int(labels.max()) + 1
        if wanted <= head.out_features:
            return
        if wanted > head.out_features + MOST_NEW_CLASSES:
            raise ValueError(
                f"`labels` holds {wanted - 1}, but the head has {head.out_features} outputs, and "
                f"grows by {MOST_NEW_CLASSES} at a time; number classes from 0, or pass "
                "`label_map=LabelMap()`."
            )
        self.widen(wanted, transaction)

    @property
    def head(self) -> GrowingHead | None:
        """The model's layer that widens for new classes, if it has one."""
        return self._network.head

    def widen(self, num_classes: int, transaction: Transaction) -> None:
        """Widen the head, and take the model as it is then."""
        head = self.head
        assert head is not None
        grow, put_back = head.prepared_growth(num_classes, self.optimizer)
        transaction.on_failure(self._take_model_as_it_is)
        transaction.on_failure(put_back)
        grow()
        self._take_model_as_it_is()

    def _take_model_as_it_is(self) -> None:
        self._snapshot = Snapshot(self.model, self.optimizer)
        self._network.take_others()

    def _taken(self, inputs: object, labels: object = None) -> object:
        """Take inputs as people have them: tensors, arrays, or lists of examples."""
        return as_inputs(
            inputs,
            count=len(labels) if isinstance(labels, Tensor) and labels.ndim else None,
            dtype=self._network.dtype,
            lists_are_arguments=None if self.memory is None else self.memory.takes_lists_apart,
        )

    def _notice_changes(self) -> None:
        """Take the model as it is now: its head may have been widened, or a part frozen."""
        if self._network.sees_others():
            self._take_model_as_it_is()  # the network last: until then, they are seen again
        self._network.notice_frozen()

    def _may_move_last(self, admitted: Int64[Tensor, " admitted"]) -> bool:
        """Whether nothing that is still to be found out needs the model to have moved.

        The move is then the step's last act, and no weight needs to be copied in case of failure.
        """
        if self.iterations > 1 or not is_plain_sgd(self.optimizer):
            return False
        if self.predictor.follows_weights:
            return False
        if self.storage is None:
            return True
        if not admitted.shape[0]:
            return self.storage.margins in ("never", "insertion")
        return self.storage.margins == "never" and not self.storage.needs_evidence

    # --- all or nothing ---------------------------------------------------------------------------

    @property
    def _may_draw(self) -> bool:
        """Whether anything in a step may draw from torch's own generator."""
        return self._others_may_draw or self._network.may_draw

    def _remember_model(self, transaction: Transaction) -> None:
        """Remember what a pass may switch, draw or move."""
        network = self._network
        if self._may_draw or not network.is_settled or network.is_under_autocast:
            transaction.on_failure(Surroundings(network.modules, network.device).put_back)
        transaction.on_failure(network.forget)
        transaction.on_failure(self._snapshot.take_buffers())

    def _remember(self, transaction: Transaction) -> None:
        """Remember all that a step changes on its way, but for the weights."""
        if self.memory is not None:
            transaction.on_failure(self.memory.way_back_of_counters())
        for purpose, generator in self.generators.items():
            if purpose != "model" or self._may_draw:
                transaction.on_failure(partial(generator.set_state, generator.get_state()))
        if self._may_draw:
            self._lend_generator(transaction)

    def _remember_storage(self, transaction: Transaction) -> None:
        if self.storage is not None:
            kept = {name: tensor.clone() for name, tensor in self.storage.state().items()}
            transaction.on_failure(partial(self._put_storage_back, kept))

    def _put_storage_back(self, state: Mapping[str, Tensor]) -> None:
        if self.storage is not None and (state or self.storage.state()):
            self.storage.restore({name: tensor.clone() for name, tensor in state.items()})

    def _lend_generator(self, transaction: Transaction) -> None:
        """Let the model's passes draw from the learner's generator, and nobody behind them."""
        device = self._network.device
        states = generator_states(device)
        transaction.afterwards(partial(set_generator_states, device, states))
        lend(self.generators["model"], device)

    def _count(self, num_incoming: int, transaction: Transaction) -> None:
        """Note where the step leads; memory and learner go there together."""
        step, seen = self.step + 1, self.seen + num_incoming
        memory, seen_by_memory = self.memory, 0
        if memory is not None:
            seen_by_memory = memory.seen + num_incoming
        generator, drawn = self.generators["model"], None
        if self._may_draw:
            drawn = lent_state(generator, self._network.device)

        def write() -> None:
            if memory is not None:
                memory.seen = seen_by_memory
            if drawn is not None:
                generator.set_state(drawn)
            self.step, self.seen = step, seen

        transaction.write(write)

    # --- guards -----------------------------------------------------------------------------------

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
