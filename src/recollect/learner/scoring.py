"""What the learner tells its policies: measurements made when asked for, leaving no trace."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from recollect.gradients import Groups
from recollect.learner.batch import Batch
from recollect.learner.checks import check_gradients
from recollect.learner.network import Network, evaluating_unseen
from recollect.learner.passes import IncomingPass
from recollect.memory import Memory


class VirtualStepProbe:
    """Answers a retrieval policy: losses of slots before and after a step on the incoming batch.

    The virtual step is plain gradient descent with the optimizer's learning rates. While losses are
    taken, parameters point to other tensors; no model is copied.
    """

    def __init__(
        self,
        network: Network,
        memory: Memory,
        optimizer: torch.optim.Optimizer,
        alone: IncomingPass,
    ) -> None:
        self._network, self._memory, self._optimizer = network, memory, optimizer
        self._alone = alone

    def losses_before(self, slots: Int64[Tensor, " slots"]) -> Float[Tensor, " slots"]:
        """Loss of each slot's example under the model as it is."""
        return self._network.look(Batch(*self._memory.read(slots)))

    def losses_after(self, slots: Int64[Tensor, " slots"]) -> Float[Tensor, " slots"]:
        """Loss of each slot's example after a virtual step on the incoming batch alone."""
        with self._stepped():
            return self._network.look(Batch(*self._memory.read(slots)))

    @contextmanager
    def _stepped(self) -> Iterator[None]:
        found = self._alone.gradient()
        check_gradients(found)
        gradients = {id(self._network.parameters[name]): g for name, g in found.items()}
        kept: list[tuple[Tensor, Tensor]] = []
        try:
            for group in self._optimizer.param_groups:
                moved = [p for p in group["params"] if id(p) in gradients]
                along = [gradients[id(p)] for p in moved]
                stepped = torch._foreach_sub(
                    [p.data for p in moved], torch._foreach_mul(along, float(group["lr"]))
                )
                for parameter, value in zip(moved, stepped, strict=True):
                    kept.append((parameter, parameter.data))
                    parameter.data = value
            yield
        finally:
            for parameter, original in kept:
                parameter.data = original


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

        One pass in evaluation mode, where an example's gradient is its own, over all of them.
        """
        num_batches, size = slots.shape
        newcomers = self._incoming.take(self._admitted)
        count = len(newcomers)
        batch = Batch(*self._memory.read(slots.flatten())).followed_by(newcomers)
        network = self._network
        with nullcontext() if network.is_mode_free else evaluating_unseen(network.model):
            with network.engine.record() as tape:
                _, losses = network.losses(batch)
            groups = Groups((size,) * num_batches + (1,) * count)
            ones = torch.ones_like(losses)
            measured = tape.measure(losses, ones, groups, losses.new_ones(len(groups)))
        with torch.no_grad():
            gram = measured.gram().cpu()
        across = gram[num_batches:, :num_batches]
        within = gram[num_batches:, num_batches:]
        lengths = gram.diagonal().clamp_min(0).sqrt()
        tiny = torch.finfo(gram.dtype).tiny
        each = across / torch.outer(lengths[num_batches:], lengths[:num_batches]).clamp_min(tiny)
        length_together = within.sum().clamp_min(0).sqrt()
        together = across.sum(0) / (length_together * lengths[:num_batches]).clamp_min(tiny)
        return each, together
