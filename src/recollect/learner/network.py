"""The model with its loss: passes that train, and passes that only look."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from recollect import nested
from recollect.gradients import GradientEngine, Groups, Measurement
from recollect.learner.batch import Batch
from recollect.learner.checks import check_logits, check_not_probabilities, checked_losses

Loss = Callable[[Tensor, Tensor], Tensor]
Transform = Callable[[object], object]
Gradients = dict[str, Tensor]


@dataclass(slots=True)
class Pass:
    """A forward and backward pass: losses and outputs by example, and the gradients found.

    `gradients` is the gradient of the summed mean losses of all parts, or, if it was asked for, a
    measurement of each part's or example's gradient.
    """

    losses: Float[Tensor, " examples"]
    outputs: Tensor
    gradients: Gradients | Measurement


class Network:
    """A model, how examples become its input, and the loss of each example."""

    def __init__(
        self,
        model: nn.Module,
        parameters: dict[str, nn.Parameter],
        *,
        loss: Loss | None,
        transform: Transform | None,
    ) -> None:
        self.model = model
        self.parameters = parameters
        self.classifies = loss is None
        self.engine = GradientEngine(model, parameters)
        self._loss = loss
        self._transform = transform
        self._seen_logits = False

    # --- passes that train ------------------------------------------------------------------------

    def differentiate(self, batch: Batch, part_sizes: tuple[int, ...]) -> Pass:
        """Return the gradient of the mean loss of each part of the batch, summed over parts."""
        outputs, losses = self.losses(batch)
        objective = losses @ _mean_weights(part_sizes, losses.dtype, losses.device)
        found = torch.autograd.grad(objective, list(self.parameters.values()), allow_unused=True)
        pairs = zip(self.parameters, found, strict=True)
        gradients = {name: gradient for name, gradient in pairs if gradient is not None}
        return Pass(losses.detach(), outputs.detach(), gradients)

    def measure(self, batch: Batch, *, incoming: int) -> Pass:
        """Measure the mean gradient of the first `incoming` examples, and each later one's.

        One backward pass of mean(incoming losses) + mean(replayed losses), whose shares are then
        scaled: where BatchNorm mixes examples, they are contributions to exactly ER's gradient.
        """
        replayed = len(batch) - incoming
        with self.engine.record() as tape:
            outputs, losses = self.losses(batch)
        parts = tuple(size for size in (incoming, replayed) if size)
        groups = Groups(((incoming,) if incoming else ()) + (1,) * replayed)
        scales = _row_scales(incoming, replayed, losses.dtype, losses.device)
        coefficients = _mean_weights(parts, losses.dtype, losses.device)
        measured = tape.measure(losses, coefficients, groups, scales)
        return Pass(losses.detach(), outputs.detach(), measured)

    # --- passes that only look --------------------------------------------------------------------

    @torch.no_grad()
    def look(self, batch: Batch) -> Float[Tensor, " examples"]:
        """Return losses with the model in the mode it is in, leaving no trace."""
        with leaving_no_trace(self.model):
            return self.losses(batch)[1]

    @torch.no_grad()
    def predict(self, inputs: object, *, batch_size: int | None = None) -> Tensor:
        """Return outputs in evaluation mode, leaving no trace."""
        count = len(nested.leaves(inputs)[0])
        size = count if batch_size is None else batch_size
        with leaving_no_trace(self.model), evaluating(self.model):
            parts = [
                self._call(self._prepared(_slice(inputs, start, start + size)))
                for start in range(0, max(count, 1), max(size, 1))
            ]
        if not all(isinstance(part, Tensor) for part in parts):
            raise TypeError(f"the model returned a {type(parts[0]).__name__}; return a tensor.")
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    # --- the forward pass -------------------------------------------------------------------------

    @property
    def device(self) -> torch.device:
        """Where the model lives."""
        return next(iter(self.parameters.values())).device

    def losses(self, batch: Batch) -> tuple[Tensor, Float[Tensor, " examples"]]:
        """Run the model on stored-form examples; return outputs and one loss each."""
        outputs = self._call(self._prepared(batch.inputs))
        labels = batch.labels.to(self.device)
        if self._loss is not None:
            return outputs, checked_losses(self._loss(outputs, labels), len(batch))
        logits = check_logits(outputs, labels)
        if not self._seen_logits:
            check_not_probabilities(logits.detach())
            self._seen_logits = True
        losses = F.cross_entropy(logits, labels.long(), reduction="none")
        return logits, checked_losses(losses, len(batch))

    def _prepared(self, inputs: object) -> object:
        on_device = nested.map_leaves(self._to_device, inputs)
        return on_device if self._transform is None else self._transform(on_device)

    def _to_device(self, leaf: Tensor) -> Tensor:
        return leaf.to(self.device)

    def _call(self, inputs: object) -> Tensor:
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
def _mean_weights(
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


def _slice(inputs: object, start: int, stop: int) -> object:
    return nested.map_leaves(lambda leaf: leaf[start:stop], inputs)


@contextmanager
def leaving_no_trace(model: nn.Module) -> Iterator[None]:
    """Put the model's buffers and torch's generator back afterwards, to the bit."""
    buffers = list(model.buffers())
    kept = [buffer.clone() for buffer in buffers]
    random_state = torch.get_rng_state()
    try:
        yield
    finally:
        for buffer, copy in zip(buffers, kept, strict=True):
            buffer.data.copy_(copy)
        torch.set_rng_state(random_state)


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
