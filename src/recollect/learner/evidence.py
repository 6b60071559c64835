"""What the learner tells its policies: measurements made when asked for, leaving no trace."""

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from recollect.choices import Passes
from recollect.gradients import Groups, Measurement
from recollect.memory import Memory, MemoryColumn
from recollect.network.batch import Batch, stored_batch
from recollect.network.network import Network
from recollect.network.passes import pass_incoming, summed
from recollect.network.runaway import check_gradients
from recollect.network.ways.contract import Gradients, Pass
from recollect.rollback.generators import SameDraws
from recollect.rollback.transaction import Transaction

# Weights times examples of a pass that costs little more than starting it.
_QUICKLY_DONE: Final = 10_000_000
_NOT_DECLARED: Final = ValueError(
    "the storage policy asks for evidence but its `needs_evidence` is False; leave it True."
)


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Slots, their examples as stored and as the model takes them, and what it draws then."""

    slots: Int64[Tensor, " slots"]
    batch: Batch
    prepared: object
    version: int
    draws: SameDraws

    def were_touched(self) -> bool:
        """Whether the model may have written to what it was given; they are read anew then."""
        return not (isinstance(self.prepared, Tensor) and self.prepared._version == self.version)


class VirtualStepProbe:
    """Answers a retrieval policy: losses of slots before and after a step on the incoming batch.

    The virtual step is plain gradient descent with the optimizer's learning rates. While losses are
    taken, parameters point to other tensors; no model is copied. `transaction` gets the way back.

    Attributes:
        passed: The pass over the incoming batch, if it was made and can stand for the training one.
    """

    def __init__(
        self,
        network: Network,
        memory: Memory,
        optimizer: torch.optim.Optimizer,
        incoming: Batch,
        transaction: Transaction,
        *,
        passes: Passes,
        measures: bool,
        columns: tuple[MemoryColumn, ...] = (),
    ) -> None:
        self._network, self._memory, self._optimizer = network, memory, optimizer
        self._incoming, self._transaction = incoming, transaction
        self._passes, self._measures = passes, measures
        self._columns = {column.name for column in columns}
        self.passed: Pass | None = None
        self._along: Gradients | None = None
        self._candidates: _Candidates | None = None
        self._draws: SameDraws | None = None

    def losses_before(self, slots: Int64[Tensor, " slots"]) -> Float[Tensor, " slots"]:
        """Loss of each slot's example under the model as it is."""
        return self._look(slots)

    def losses_after(self, slots: Int64[Tensor, " slots"]) -> Float[Tensor, " slots"]:
        """Loss of each slot's example after a virtual step on the incoming batch alone."""
        stepped = self._stepped_values()
        kept = [(parameter, parameter.data) for parameter, _ in stepped]
        self._transaction.on_failure(partial(_point_to, kept))
        try:
            _point_to(stepped)
            return self._look(slots)
        finally:
            _point_to(kept)

    def note(
        self, column: str, slots: Int64[Tensor, " slots"], values: Float[Tensor, " slots"]
    ) -> None:
        """Write numbers to a memory column that the policy declared."""
        if column not in self._columns:
            raise ValueError(
                f"the retrieval policy notes {column!r}, which its `columns` do not name."
            )
        self._transaction.on_failure(self._memory.way_back_from_note(column, slots))
        self._memory.note(column, slots, values)

    def _look(self, slots: Int64[Tensor, " slots"]) -> Float[Tensor, " slots"]:
        """Take losses, with the same examples and the same dropout before and after."""
        found = self._candidates
        if found is None or found.slots is not slots or found.were_touched():
            self._candidates = found = self._read(slots)
        with found.draws:
            return self._network.look(found.prepared, found.batch)

    def _read(self, slots: Int64[Tensor, " slots"]) -> "_Candidates":
        """Read and transform slots once, for both questions about them."""
        if self._draws is None:
            self._draws = self._network.same_draws()
        batch = stored_batch(self._memory, slots)
        with self._draws, torch.no_grad():
            prepared = self._network.prepared(batch)
            version = prepared._version if isinstance(prepared, Tensor) else -1
            return _Candidates(slots, batch, prepared, version, self._network.same_draws())

    def _stepped_values(self) -> list[tuple[nn.Parameter, Tensor]]:
        """Return each parameter that the step moves, and where to."""
        found = self._gradient()
        check_gradients(found)
        gradients = {id(self._network.parameters[name]): g for name, g in found.items()}
        values: list[tuple[nn.Parameter, Tensor]] = []
        for group in self._optimizer.param_groups:
            moved = [p for p in group["params"] if id(p) in gradients]
            if not moved:  # a group that this pass did not use
                continue
            along = [gradients[id(p)] for p in moved]
            stepped = torch._foreach_mul(along, -float(group["lr"]))
            torch._foreach_add_(stepped, [p.data for p in moved])
            values += zip(moved, stepped, strict=True)
        return values

    def _gradient(self) -> Gradients:
        """Return g, measured once."""
        if self._along is not None:
            return self._along
        network = self._network
        if self._passes == "joint" and (network.mixes_examples or network.objective.couples):
            # The training pass will be joint, with other statistics and partners; this only looks.
            with network.unseen():
                looked = pass_incoming(network, self._incoming, measures=False)
            self._along = summed(looked.gradients)
        else:
            # Without mixing the joint pass has the same gradients: this pass can be its first half.
            self.passed = pass_incoming(network, self._incoming, measures=self._measures)
            self._along = summed(self.passed.gradients)
        return self._along


def _point_to(values: list[tuple[nn.Parameter, Tensor]]) -> None:
    for parameter, value in values:
        parameter.data = value


class NoEvidence:
    """Refuses a storage policy that said it needs no evidence, and asks all the same."""

    def margin_increments(self) -> Float[Tensor, " admitted"]:
        """Refuse."""
        raise _NOT_DECLARED

    def cosines(
        self,
        slots: Int64[Tensor, "batches size"],  # noqa: ARG002
    ) -> tuple[Float[Tensor, "admitted batches"], Float[Tensor, " batches"]]:
        """Refuse."""
        raise _NOT_DECLARED

    def point_against(self, slots: Int64[Tensor, "batches size"]) -> bool:  # noqa: ARG002
        """Refuse."""
        raise _NOT_DECLARED


class NewcomerEvidence:
    """Answers a storage policy about the admitted newcomers, after the model learnt from them."""

    def __init__(
        self,
        network: Network,
        memory: Memory,
        incoming: Batch,
        admitted: Int64[Tensor, " admitted"],
        increments: Float[Tensor, " admitted"] | None,
    ) -> None:
        self._network, self._memory = network, memory
        self._incoming, self._admitted = incoming, admitted
        self._increments = increments
        self._known: tuple[Tensor, Tensor] | None = None

    def margin_increments(self) -> Float[Tensor, " admitted"]:
        """M after minus m before the step that learnt each admitted newcomer (MI)."""
        if self._increments is None:
            raise ValueError(
                "the storage policy asks for margin increments but its `margins` is 'never' or "
                "'replay'; set `margins` to 'insertion', 'both' or 'all'."
            )
        return self._increments

    def cosines(
        self, slots: Int64[Tensor, "batches size"]
    ) -> tuple[Float[Tensor, "admitted batches"], Float[Tensor, " batches"]]:
        """Cosines between newcomers' gradients and those of batches of slots.

        Measured in evaluation mode, where an example's gradient is its own.
        """
        num_batches = len(slots)
        gram = self._gram_of_each(slots)
        across = gram[num_batches:, :num_batches]
        lengths = gram.diagonal().clamp_min(0).sqrt()
        tiny = torch.finfo(gram.dtype).tiny
        each = across / torch.outer(lengths[num_batches:], lengths[:num_batches]).clamp_min(tiny)
        length_together = gram[num_batches:, num_batches:].sum().clamp_min(0).sqrt()
        together = across.sum(0) / (length_together * lengths[:num_batches]).clamp_min(tiny)
        return each, together

    def point_against(self, slots: Int64[Tensor, "batches size"]) -> bool:
        """Whether the newcomers' mean gradient points against that of every batch of slots.

        Most often one of the first tells: where passes take long, each has a pass of its own, and
        their gradients need no taking apart. On a small model the first is passed together with the
        newcomers, and all others at once.
        """
        work = self._network.num_weights * (slots.numel() + len(self._admitted))
        if work < _QUICKLY_DONE:
            return self._small_points_against(slots)
        newcomers_gradient = self._differentiate(self._newcomers())
        return all(
            _product(newcomers_gradient, self._differentiate(self._batches(batch[None]))) < 0
            for batch in slots
        )

    def _small_points_against(self, slots: Int64[Tensor, "batches size"]) -> bool:
        newcomers = Groups((len(self._admitted),))
        both = self._newcomers().followed_by(self._batches(slots[:1]))
        first = self._measure(both, newcomers + _groups(slots[:1]))
        with torch.no_grad():
            gradient = first.combine(first.scales.new_tensor([1.0, 0.0]))
            if first.products_with(gradient)[1] >= 0:
                return False
        others = slots[1:]
        if not len(others):
            return True
        measured = self._measure(self._batches(others), _groups(others))
        with torch.no_grad():
            return bool((measured.products_with(gradient) < 0).all())

    def _gram_of_each(
        self, slots: Int64[Tensor, "batches size"]
    ) -> Float[Tensor, "gradients gradients"]:
        """Inner products of the batches' gradients and of every newcomer's own, measured once."""
        if self._known is None or self._known[0] is not slots:
            each = Groups((1,) * len(self._admitted))
            both = self._batches(slots).followed_by(self._newcomers())
            self._known = slots, _gram(self._measure(both, _groups(slots) + each))
        return self._known[1]

    def _newcomers(self) -> Batch:
        return self._incoming.take(self._admitted)

    def _batches(self, slots: Int64[Tensor, "batches size"]) -> Batch:
        return stored_batch(self._memory, slots.flatten())

    def _differentiate(self, batch: Batch) -> Gradients:
        """Return the gradient of a batch's summed losses, of the parameters that are measured."""
        network = self._network
        with network.evaluating_unseen():
            found = summed(network.differentiate(batch, partial(_ones, len(batch))).gradients)
        if network.measured is None:
            return found
        return {name: gradient for name, gradient in found.items() if name in network.measured}

    def _measure(self, batch: Batch, groups: Groups) -> Measurement:
        with self._network.evaluating_unseen():
            found = self._network.measure_groups(
                batch, groups, partial(_ones, len(batch)), partial(_ones, len(groups))
            )
        assert isinstance(found.gradients, Measurement)
        return found.gradients


def _product(one: Gradients, other: Gradients) -> float:
    """Inner product of two gradients."""
    return sum(
        float(torch.dot(gradient.flatten(), other[name].flatten()))
        for name, gradient in one.items()
        if name in other
    )


def _groups(slots: Int64[Tensor, "batches size"]) -> Groups:
    return Groups((slots.shape[1],) * len(slots))


@torch.no_grad()
def _gram(measured: Measurement) -> Float[Tensor, "groups groups"]:
    return measured.gram().cpu()


@lru_cache(maxsize=64)
def _ones(count: int, dtype: torch.dtype, device: torch.device) -> Float[Tensor, " count"]:
    return torch.ones(count, dtype=dtype, device=device)
