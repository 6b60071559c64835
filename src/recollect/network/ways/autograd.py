"""Passes through any model: forwards by calling it, backwards by autograd."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from typing_extensions import override

from recollect import nested
from recollect.gradients import GradientEngine, Measurement
from recollect.gradients import Objective as Measured
from recollect.gradients.capture import eagerly, is_compiled
from recollect.gradients.precision import at_least
from recollect.network.autocast import Autocast
from recollect.network.batch import Batch
from recollect.network.checks import check_logits, check_not_probabilities, checked_losses
from recollect.network.classes_seen import ClassesSeen
from recollect.network.contributions import contributions, undefined
from recollect.network.explain import EXPLAINED, loss_failed, model_failed
from recollect.network.outputs import by_example
from recollect.network.ways.contract import Numbers, Pass, Request, Way
from recollect.objectives import Answers, Objective


@final
class ByAutograd(Way):
    """Passes through any model.

    Args:
        model: The model.
        parameters: Those to differentiate, by name.
        objective: What is asked of outputs.
        classes_seen: Those of the stream so far, if the objective asks.
        autocast: The precision that passes run in.
        measured: Names of the parameters that enter inner products; None for all.
    """

    def __init__(
        self,
        model: nn.Module,
        parameters: Mapping[str, nn.Parameter],
        *,
        objective: Objective,
        classes_seen: ClassesSeen,
        autocast: Autocast,
        measured: frozenset[str] | None = None,
    ) -> None:
        self._model, self._parameters = model, parameters
        self._objective, self._classes_seen = objective, classes_seen
        self._names = [column.name for column in objective.columns]
        self._autocast = autocast
        self.engine = GradientEngine(model, parameters, measured=measured)
        self._measures_all = measured is None
        self._measurable = eagerly if is_compiled(model) else nullcontext
        self._seen_logits = False

    @override
    def differentiate(self, prepared: object, batch: Batch, coefficients: Numbers) -> Pass:
        outputs, losses, _ = self._taken_apart(prepared, batch)
        objective = losses @ coefficients(losses.dtype, losses.device)
        found = torch.autograd.grad(objective, list(self._parameters.values()), allow_unused=True)
        pairs = zip(self._parameters, found, strict=True)
        gradients = {name: gradient for name, gradient in pairs if gradient is not None}
        return Pass(losses.detach(), self._by_example(outputs, batch), gradients)

    @override
    def measure(self, prepared: object, batch: Batch, request: Request) -> Pass:
        with self._measurable():
            outputs, losses, are_apart = self._taken_apart(prepared, batch)
        if not are_apart:
            raise undefined(type(self._objective).__name__)
        kind = losses.dtype, losses.device
        asked = Measured(
            losses,
            request.coefficients(*kind),
            request.groups,
            request.scales(*kind),
            request.products,
        )
        found: Measurement
        if request.weighs_losses or not self._measures_all:
            found = self.engine.measure_losses(asked, to_be_joined=request.is_joined)
        else:
            found = self.engine.measure(asked)
        return Pass(losses.detach(), self._by_example(outputs, batch), found)

    @override
    def losses(self, prepared: object, batch: Batch) -> tuple[object, Float[Tensor, " examples"]]:
        with self._autocast.again():
            outputs, losses = self._found_losses(prepared, batch)
        return outputs, losses if batch.weights is None else losses * batch.weights.to(losses)

    def _taken_apart(
        self, prepared: object, batch: Batch
    ) -> tuple[object, Float[Tensor, " examples"], bool]:
        """Return outputs, losses, and whether the gradient of each loss is an example's own."""
        outputs, losses = self.losses(prepared, batch)
        if not self._objective.couples:
            return outputs, losses, True
        apart = contributions(losses, outputs, batch, self._objective.views)
        return (outputs, losses, False) if apart is None else (outputs, apart, True)

    def _by_example(self, outputs: object, batch: Batch) -> object | None:
        """Return the outputs of each example, in its first view."""
        count, views = len(batch), self._objective.views
        found = by_example(outputs, views * count)
        if views == 1 or found is None:
            return found
        return nested.map_leaves(lambda leaf: leaf[:count], found)

    def _found_losses(
        self, prepared: object, batch: Batch
    ) -> tuple[object, Float[Tensor, " examples"]]:
        outputs, objective = self._called(prepared), self._objective
        like = next(iter(self._parameters.values()))
        labels = batch.labels.to(like.device)
        # Half a precision is enough to pass a network, not to add up and compare what came out.
        if objective.takes_logits:
            logits = check_logits(outputs, batch.labels, views=objective.views)
            # Without gradients they have no history to look at.
            if not self._seen_logits and logits.requires_grad:
                check_not_probabilities(logits)
                self._seen_logits = True
            outputs = at_least(logits, like.dtype)
        answers = Answers(
            outputs,
            labels,
            batch.origins,
            {name: batch.columns[name].to(like.device) for name in self._names}
            if batch.columns
            else {},
            self._classes_seen.numbers,
            objective.views,
        )
        try:
            found = objective(answers)
        except EXPLAINED as error:
            raise loss_failed(error, outputs, labels) from error
        return outputs, at_least(checked_losses(found, len(batch)), like.dtype)

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
