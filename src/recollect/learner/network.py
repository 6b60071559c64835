"""The model with its loss: passes that train, and passes that only look."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
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
from recollect.learner.checks import check_logits, check_not_probabilities, checked_losses
from recollect.learner.memory_order import channels_last, may_gain, takes_channels_last
from recollect.learner.model_watch import ModelWatch
from recollect.learner.outputs import by_example, cut, put_together
from recollect.learner.randomness import SameDraws, keeping_generators
from recollect.learner.unseen import evaluating_unseen, leaving_no_trace

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
    outputs: object | None  # see `by_example`
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
        self.model, self._optimizer = model, optimizer
        self._weighs = weighs
        self._loss, self._transform = loss, transform
        self.classifies = loss is None
        self._autocast: torch.dtype | None = None
        self._watch = ModelWatch(model, optimizer)
        self._held: dict[str, nn.Parameter] = {}
        self._left_out: dict[str, nn.Parameter] = {}
        self._placed: Tensor = next(model.parameters(), torch.empty(0))  # none at all is refused
        self._build()
        self.check_trains()

    @property
    def may_draw(self) -> bool:
        """Whether a pass may draw from torch's own generator, as dropout does."""
        return not self.is_mode_free or self._transform is not None or self._loss is not None

    def notice_changes(self) -> bool:
        """Notice layers that were replaced, and parameters frozen or freed, since the last step.

        Returns:
            Whether layers or parameters were replaced.
        """
        replaced = self._watch.sees_another()
        if replaced:
            self._build()
            self._watch.remember()
        elif [p.requires_grad for p in self._held.values()] != self._trainable:
            self._find_trainable()
        return replaced

    def _build(self) -> None:
        """Find out all that follows from the model's layers and the optimizer's parameters."""
        held = {id(p) for group in self._optimizer.param_groups for p in group["params"]}
        named = dict(self.model.named_parameters())
        self._left_out = {
            name: parameter
            for name, parameter in named.items()
            if id(parameter) not in held
            and (name in self._left_out or self._held.get(name, parameter) is not parameter)
        }
        self._held = {name: p for name, p in named.items() if id(p) in held}
        #: Whether training and evaluation mode are the same, so that no switching is needed.
        self.is_mode_free = all(type(module) in _MODE_FREE for module in self.model.modules())
        self._seen_logits = False
        self._find_trainable()
        self._channels_last: bool | None = None if may_gain(self.model, self.device) else False

    def _find_trainable(self) -> None:
        """Find out all that follows from which parameters are frozen."""
        self._trainable = [parameter.requires_grad for parameter in self._held.values()]
        self.parameters = {name: p for name, p in self._held.items() if p.requires_grad}
        self.engine = GradientEngine(self.model, self.parameters)
        self._chain = Chain.of(self.model, self.parameters) if self.classifies else None
        self.num_weights = sum(parameter.numel() for parameter in self.parameters.values())
        self._placed = next(iter(self.parameters.values()), self._placed)

    def check_trains(self) -> None:
        """Refuse a model in which nothing can be learnt, or not what was learnt before."""
        if self.parameters and not self._left_out:
            return
        if not self.parameters:
            raise ValueError(
                "`optimizer` holds none of the model's trainable parameters; build it from "
                "`model.parameters()`, and leave some of them unfrozen."
            )
        left_out = [name for name, p in self._left_out.items() if p.requires_grad]
        if left_out:
            raise ValueError(
                f"`{left_out[0]}` was replaced by a parameter that `optimizer` does not hold, and "
                "would not be trained; call `optimizer.add_param_group({'params': ...})` with the "
                "new layer's parameters, or freeze them with `requires_grad_(False)`."
            )

    def settle_memory_order(self, inputs: object) -> None:
        """Before the first pass of all: choose the faster order in memory the model can take.

        It follows from the model and its precision, never from a clock, so that a resumed run
        chooses alike.
        """
        if self._channels_last is None:
            place = self.model, self.device
            modes = partial(evaluating_unseen, *place), partial(leaving_no_trace, *place)
            with leaving_no_trace(*place), self.in_full_precision():  # a transform may draw
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
        return Pass(losses.detach(), by_example(outputs, len(batch)), gradients)

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
        return Pass(losses.detach(), by_example(outputs, len(batch)), measured)

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
        return Pass(losses.detach(), by_example(outputs, len(batch)), measured)

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

    def unseen(self) -> AbstractContextManager[None]:
        """Leave no trace of what is done in a block; free where there can be none."""
        if not self.is_mode_free:
            return leaving_no_trace(self.model, self.device)
        return keeping_generators(self.device) if self.may_draw else nullcontext()

    def evaluating_unseen(self) -> AbstractContextManager[None]:
        """Do the same in evaluation mode."""
        return self.unseen() if self.is_mode_free else evaluating_unseen(self.model, self.device)

    def same_draws(self) -> SameDraws:
        """From here on, let passes that are to be compared see the same augmentation."""
        return SameDraws(self.device if self.may_draw else None)

    @torch.no_grad()
    def look(self, batch: Batch) -> Float[Tensor, " examples"]:
        """Return losses with the model in the mode it is in, leaving no trace."""
        with self.unseen():
            return self.losses(batch)[1]

    @torch.no_grad()
    def predict(self, inputs: object, *, batch_size: int | None = None) -> Any:
        """Return outputs in evaluation mode, leaving no trace."""
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"`batch_size` is {batch_size}; pass at least 1, or None for all.")
        self.settle_memory_order(inputs)
        count = len(nested.leaves(inputs)[0])
        size = count if batch_size is None else batch_size
        with self.evaluating_unseen(), self.in_full_precision():
            parts, starts = [], range(0, max(count, 1), max(size, 1))
            for start in starts:
                prepared = self._prepared(cut(inputs, start, start + size))
                with autocast_again(self._autocast, self.device):
                    parts.append(self._call(prepared))
        if len(parts) == 1:
            return parts[0]
        return put_together(parts, [min(size, count - start) for start in starts])

    # --- the forward pass -------------------------------------------------------------------------

    @property
    def device(self) -> torch.device:
        """Where the model lives."""
        return self._placed.device

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
