"""Passes through any model: forwards by calling it, backwards by autograd."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from recollect.gradients import GradientEngine, Measurement
from recollect.gradients import Objective as Measured
from recollect.gradients.capture import eagerly, is_compiled
from recollect.gradients.precision import at_least
from recollect.network.autocast import Autocast
from recollect.network.batch import Batch
from recollect.network.checks import check_logits, check_not_probabilities, checked_losses
from recollect.network.explain import EXPLAINED, loss_failed, model_failed
from recollect.network.outputs import by_example
from recollect.network.per_example import Loss
from recollect.network.ways.contract import Numbers, Pass, Request, Way


@final
class ByAutograd(Way):
    """Passes through any model.

    Args:
        model: The model.
        parameters: Those to differentiate, by name.
        loss: One value per example; None is cross entropy on logits.
        autocast: The precision that passes run in.
    """

    def __init__(
        self,
        model: nn.Module,
        parameters: Mapping[str, nn.Parameter],
        *,
        loss: Loss | None,
        autocast: Autocast,
    ) -> None:
        self._model, self._parameters = model, parameters
        self._loss, self._autocast = loss, autocast
        self.engine = GradientEngine(model, parameters)
        self._measurable = eagerly if is_compiled(model) else nullcontext
        self._seen_logits = False

    @override
    def differentiate(self, prepared: object, batch: Batch, coefficients: Numbers) -> Pass:
        outputs, losses = self.losses(prepared, batch)
        objective = losses @ coefficients(losses.dtype, losses.device)
        found = torch.autograd.grad(objective, list(self._parameters.values()), allow_unused=True)
        pairs = zip(self._parameters, found, strict=True)
        gradients = {name: gradient for name, gradient in pairs if gradient is not None}
        return Pass(losses.detach(), by_example(outputs, len(batch)), gradients)

    @override
    def measure(self, prepared: object, batch: Batch, request: Request) -> Pass:
        with self._measurable():
            outputs, losses = self.losses(prepared, batch)
        kind = losses.dtype, losses.device
        asked = Measured(losses, request.coefficients(*kind), request.groups, request.scales(*kind))
        found: Measurement
        if request.weighs_losses:
            found = self.engine.measure_losses(asked, to_be_joined=request.is_joined)
        else:
            found = self.engine.measure(asked)
        return Pass(losses.detach(), by_example(outputs, len(batch)), found)

    @override
    def losses(self, prepared: object, batch: Batch) -> tuple[object, Float[Tensor, " examples"]]:
        with self._autocast.again():
            outputs, losses = self._found_losses(prepared, batch)
        return outputs, losses if batch.weights is None else losses * batch.weights.to(losses)

    def _found_losses(
        self, prepared: object, batch: Batch
    ) -> tuple[object, Float[Tensor, " examples"]]:
        outputs = self._called(prepared)
        like = next(iter(self._parameters.values()))
        labels = batch.labels.to(like.device)
        # Half a precision is enough to pass a network, not to add up and compare what came out.
        if self._loss is not None:
            try:
                found = self._loss(outputs, labels)
            except EXPLAINED as error:
                raise loss_failed(error, outputs, labels) from error
            losses = checked_losses(found, len(batch))
            return outputs, at_least(losses, like.dtype)
        logits = check_logits(outputs, labels)
        if not self._seen_logits and logits.requires_grad:  # else they have no history to look at
            check_not_probabilities(logits)
            self._seen_logits = True
        logits = at_least(logits, like.dtype)
        losses = F.cross_entropy(logits, labels.long(), reduction="none")
        return logits, checked_losses(losses, len(batch))

    @override
    def outputs(self, prepared: object) -> Any:
        with self._autocast.again():
            return self._called(prepared)

    def _called(self, prepared: object) -> Any:
        try:
            # Several inputs are spread over the model's arguments, by position or by name.
            if isinstance(prepared, Tensor):
                return self._model(prepared)
            if isinstance(prepared, dict):
                return self._model(**prepared)
            if isinstance(prepared, tuple | list):
                return self._model(*prepared)
        except EXPLAINED as error:
            raise model_failed(error, self._model, prepared) from error
        raise TypeError(
            f"`transform` returned a {type(prepared).__name__}; return a tensor, tuple or dict."
        )
