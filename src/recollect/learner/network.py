"""The model with its loss: passes that train, and passes that only look."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from typing import Any, Final, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from recollect import nested
from recollect.gradients import GradientEngine, Groups, Measurement, Objective, mixes_examples
from recollect.gradients.chain import (
    Chain,
    ChainPass,
    cross_entropy_by_hand,
    cross_entropy_cotangents,
)
from recollect.gradients.precision import at_least, autocast_again, running_autocast
from recollect.learner.batch import Batch
from recollect.learner.buffers import BufferCopies
from recollect.learner.checks import check_logits, check_not_probabilities, checked_losses
from recollect.learner.memory_order import channels_last, may_gain, takes_channels_last

# Layers that compute the same in both modes, keep no statistics and draw nothing. Any other class,
# a model of the user's included, may look at `self.training`.
_MODE_FREE: Final = frozenset(
    {
        nn.Sequential, nn.Flatten, nn.Identity, nn.Unflatten, nn.Linear, nn.Embedding,
        nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.LayerNorm, nn.GroupNorm,
        nn.ReLU, nn.GELU, nn.Tanh, nn.Sigmoid, nn.LeakyReLU, nn.ELU, nn.SiLU, nn.Softplus,
        nn.MaxPool1d, nn.MaxPool2d, nn.AvgPool1d, nn.AvgPool2d,
        nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d,
    }
)  # fmt: skip

Loss = Callable[[Any, Tensor], Tensor]
Transform = Callable[[object], object]
Gradients = dict[str, Tensor]
Weighs = Literal["losses", "contributions"]
Numbers = Callable[[torch.dtype, torch.device], Tensor]  # made to suit the losses


@dataclass(slots=True)
class Pass:
    """A forward and backward pass: losses and outputs by example, and the gradients found.

    `gradients` is the gradient of the losses, added up with the coefficients asked for, or a
    measurement of each part's or example's gradient.
    """

    losses: Float[Tensor, " examples"]
    outputs: object  # a tensor, or whatever else the loss takes
    gradients: Gradients | Measurement


class Network:
    """A model, how examples become its input, and the loss of each example."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        loss: Loss | None,
        transform: Transform | None,
        weighs: Weighs = "losses",
    ) -> None:
        self.model = model
        self._weighs = weighs
        self.classifies = loss is None
        held = {id(p) for group in optimizer.param_groups for p in group["params"]}
        self._held = {name: p for name, p in model.named_parameters() if id(p) in held}
        self._trainable: list[bool] | None = None
        self.parameters: dict[str, nn.Parameter] = {}
        self.look_for_frozen()
        self._loss = loss
        self._transform = transform
        self._seen_logits = False
        self._channels_last: bool | None = None if may_gain(model, self.device) else False
        self._autocast: torch.dtype | None = None
        #: Whether training and evaluation mode are the same, so that no switching is needed.
        self.is_mode_free = all(type(module) in _MODE_FREE for module in model.modules())

    @property
    def may_draw(self) -> bool:
        """Whether a pass may draw from torch's own generator, as dropout does."""
        return not self.is_mode_free or self._transform is not None or self._loss is not None

    def look_for_frozen(self) -> None:
        """Notice parameters that were frozen or freed since the last step."""
        trainable = [parameter.requires_grad for parameter in self._held.values()]
        if trainable == self._trainable:
            return
        self._trainable = trainable
        self.parameters = {name: p for name, p in self._held.items() if p.requires_grad}
        self.engine = GradientEngine(self.model, self.parameters)
        self._chain = Chain.of(self.model, self.parameters) if self.classifies else None
        self.num_weights = sum(parameter.numel() for parameter in self.parameters.values())
        if not self.parameters:
            raise ValueError(
                "`optimizer` holds none of the model's trainable parameters; build it from "
                "`model.parameters()`, and leave some of them unfrozen."
            )

    def settle_memory_order(self, inputs: object) -> None:
        """Before the first pass of all: choose the faster order in memory the model can take.

        It follows from the model and its precision, never from a clock, so that a resumed run
        chooses alike.
        """
        if self._channels_last is None:
            modes = (partial(evaluating_unseen, self.model), partial(leaving_no_trace, self.model))
            with leaving_no_trace(self.model), self.in_full_precision():  # a transform may draw
                prepared = self._prepared(inputs)
            self._channels_last = takes_channels_last(self._call, prepared, modes)

    @contextmanager
    def in_full_precision(self) -> Iterator[None]:
        """Step out of an autocast that the caller is in, but for the model's passes and losses.

        Inner products, weights, scores and the optimizer keep the precision they have elsewhere.
        """
        dtype = running_autocast(self.device)
        if dtype is None or self._autocast is not None:
            yield
            return
        # A chain is passed by hand, as if nothing were cast.
        chain, self._chain, self._autocast = self._chain, None, dtype
        try:
            with torch.autocast(self.device.type, enabled=False):
                yield
        finally:
            self._chain, self._autocast = chain, None

    # --- passes that train ------------------------------------------------------------------------

    def differentiate(self, batch: Batch, coefficients: Numbers) -> Pass:
        """Return the gradient of `coefficients . losses`, one coefficient an example."""
        prepared = self._prepared(batch.inputs)
        if self._chain is not None and self._chain.takes(prepared):
            with torch.no_grad():
                run = self._pass_chain(self._chain, prepared, batch, coefficients)
                return Pass(run.losses, run.logits, self._chain.gradients(run.factors))
        outputs, losses = self._losses(prepared, batch)
        objective = losses @ coefficients(losses.dtype, losses.device)
        found = torch.autograd.grad(objective, list(self.parameters.values()), allow_unused=True)
        pairs = zip(self.parameters, found, strict=True)
        gradients = {name: gradient for name, gradient in pairs if gradient is not None}
        return Pass(losses.detach(), detached(outputs), gradients)

    def measure(self, batch: Batch, *, incoming: int) -> Pass:
        """Measure the mean gradient of the first `incoming` examples, and each later one's.

        One backward pass of mean(incoming losses) + mean(replayed losses), whose shares are then
        scaled: where BatchNorm mixes examples, they are contributions to exactly ER's gradient, and
        a rule's weights go on the losses unless the learner was told otherwise (note P8).
        """
        replayed = len(batch) - incoming
        parts = tuple(size for size in (incoming, replayed) if size)
        groups = Groups(((incoming,) if incoming else ()) + (1,) * replayed)
        coefficients = partial(mean_weights, parts)
        one_weight_for_all = len(groups) == 1
        weigh_losses = (
            self._weighs == "losses" and not one_weight_for_all and mixes_examples(self.model)
        )
        scales = partial(_row_scales, incoming, replayed)
        if not weigh_losses:
            return self.measure_groups(batch, groups, coefficients, scales)
        with self.engine.record() as tape:
            outputs, losses = self._losses(self._prepared(batch.inputs), batch)
        kind = losses.dtype, losses.device
        objective = Objective(losses, coefficients(*kind), groups, scales(*kind))
        measured = tape.measure_losses(objective, to_be_joined=not incoming)
        return Pass(losses.detach(), detached(outputs), measured)

    def measure_groups(
        self, batch: Batch, groups: Groups, coefficients: Numbers, scales: Numbers
    ) -> Pass:
        """Measure the gradients of groups of examples, from one pass of `coefficients . losses`.

        Args:
            batch: The examples.
            groups: Which of them belong together.
            coefficients: One an example.
            scales: One a group; the factor that turns its share into the gradient that is meant.
        """
        prepared = self._prepared(batch.inputs)
        if self._chain is not None and self._chain.takes(prepared):
            with torch.no_grad():
                run = self._pass_chain(self._chain, prepared, batch, coefficients)
            shares = self._chain.shares(run.factors, groups, self.engine.limit_bytes)
            measured = Measurement(shares, groups, scales(run.losses.dtype, run.losses.device))
            return Pass(run.losses, run.logits, measured)
        with self.engine.record() as tape:
            outputs, losses = self._losses(prepared, batch)
        kind = losses.dtype, losses.device
        measured = tape.measure(losses, coefficients(*kind), groups, scales(*kind))
        return Pass(losses.detach(), detached(outputs), measured)

    def _pass_chain(
        self, chain: Chain, prepared: object, batch: Batch, coefficients: Numbers
    ) -> ChainPass:
        """Pass a small model forwards and backwards by hand."""
        assert isinstance(prepared, Tensor)
        passed = chain.forward(prepared)
        labels = batch.labels.to(self.device)
        logits = self._checked_logits(passed[-1], labels)
        losses, log_probabilities = cross_entropy_by_hand(logits, labels := labels.long())
        checked_losses(losses, len(batch))
        at_logits = cross_entropy_cotangents(
            log_probabilities, labels, coefficients(losses.dtype, losses.device)
        )
        return ChainPass(logits, losses, chain.backward(passed, at_logits))

    # --- passes that only look --------------------------------------------------------------------

    @torch.no_grad()
    def look(self, batch: Batch) -> Float[Tensor, " examples"]:
        """Return losses with the model in the mode it is in, leaving no trace."""
        with nullcontext() if self.is_mode_free else leaving_no_trace(self.model):
            return self.losses(batch)[1]

    @torch.no_grad()
    def predict(self, inputs: object, *, batch_size: int | None = None) -> Any:
        """Return outputs in evaluation mode, leaving no trace."""
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"`batch_size` is {batch_size}; pass at least 1, or None for all.")
        self.settle_memory_order(inputs)
        count = len(nested.leaves(inputs)[0])
        size = count if batch_size is None else batch_size
        with (
            nullcontext() if self.is_mode_free else evaluating_unseen(self.model),
            self.in_full_precision(),
        ):
            parts = []
            for start in range(0, max(count, 1), max(size, 1)):
                prepared = self._prepared(_slice(inputs, start, start + size))
                with autocast_again(self._autocast, self.device):
                    parts.append(self._call(prepared))
        return parts[0] if len(parts) == 1 else reduce(nested.concat, parts)

    # --- the forward pass -------------------------------------------------------------------------

    @property
    def device(self) -> torch.device:
        """Where the model lives."""
        return next(iter(self.parameters.values())).device

    def losses(self, batch: Batch) -> tuple[object, Float[Tensor, " examples"]]:
        """Run the model on stored-form examples; return outputs and one loss each."""
        return self._losses(self._prepared(batch.inputs), batch)

    def _losses(self, prepared: object, batch: Batch) -> tuple[object, Float[Tensor, " examples"]]:
        if self._autocast is None:
            return self._found_losses(prepared, batch)
        with autocast_again(self._autocast, self.device):
            return self._found_losses(prepared, batch)

    def _found_losses(
        self, prepared: object, batch: Batch
    ) -> tuple[object, Float[Tensor, " examples"]]:
        outputs = self._call(prepared)
        labels = batch.labels.to(self.device)
        # Half a precision is enough to pass a network, not to add up and compare what came out.
        dtype = next(iter(self.parameters.values())).dtype
        if self._loss is not None:
            losses = checked_losses(self._loss(outputs, labels), len(batch))
            return outputs, at_least(losses, dtype)
        logits = at_least(self._checked_logits(outputs, labels), dtype)
        losses = F.cross_entropy(logits, labels.long(), reduction="none")
        return logits, checked_losses(losses, len(batch))

    def _checked_logits(self, outputs: object, labels: Tensor) -> Float[Tensor, "examples classes"]:
        logits = check_logits(outputs, labels)
        if not self._seen_logits:
            check_not_probabilities(logits.detach())
            self._seen_logits = True
        return logits

    def _prepared(self, inputs: object) -> object:
        prepared = nested.map_leaves(self._to_device, inputs)
        if self._transform is not None:
            prepared = self._transform(prepared)
        return channels_last(prepared) if self._channels_last else prepared

    def _to_device(self, leaf: Tensor) -> Tensor:
        return leaf.to(self.device)

    def _call(self, inputs: object) -> Any:
        if self._chain is not None and not torch.is_grad_enabled() and self._chain.takes(inputs):
            return self._chain.forward(inputs)[-1]  # the modules' own calls cost more
        # Several inputs are spread over the model's arguments, by position or by name.
        if isinstance(inputs, Tensor):
            return self.model(inputs)
        if isinstance(inputs, dict):
            return self.model(**inputs)
        if isinstance(inputs, tuple | list):
            return self.model(*inputs)
        raise TypeError(
            f"`transform` returned a {type(inputs).__name__}; return a tensor, tuple or dict."
        )


@lru_cache(maxsize=64)
def mean_weights(
    part_sizes: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> Float[Tensor, " examples"]:
    """1 / n for each example of a part of n: their product with losses adds up the parts' means."""
    weights = [1 / size for size in part_sizes for _ in range(size)]
    return torch.tensor(weights, dtype=dtype, device=device)


@lru_cache(maxsize=64)
def _row_scales(
    incoming: int, replayed: int, dtype: torch.dtype, device: torch.device
) -> Float[Tensor, " groups"]:
    """K for the share of each of K replayed examples, 1 for that of all incoming ones."""
    scales = [1.0] * bool(incoming) + [float(replayed)] * replayed
    return torch.tensor(scales, dtype=dtype, device=device)


def detached(outputs: object) -> object:
    """Cut outputs of any structure off the graph."""
    if isinstance(outputs, Tensor):
        return outputs.detach()
    return nested.map_leaves(Tensor.detach, outputs)


def _slice(inputs: object, start: int, stop: int) -> object:
    return nested.map_leaves(lambda leaf: leaf[start:stop], inputs)


@contextmanager
def leaving_no_trace(model: nn.Module) -> Iterator[None]:
    """Put the model's buffers and torch's generator back afterwards, to the bit."""
    buffers = BufferCopies(model)
    buffers.take()
    random_state = torch.get_rng_state()
    try:
        yield
    finally:
        buffers.restore()
        torch.set_rng_state(random_state)


@contextmanager
def evaluating_unseen(model: nn.Module) -> Iterator[None]:
    """Switch to evaluation mode and leave no trace of what happens in it."""
    with leaving_no_trace(model), evaluating(model):
        yield


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch every module to evaluation mode, and each back to its own mode afterwards."""
    training = [module for module in model.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True
