"""Weights on losses instead of on shares: where layers mix examples, or some are not measured."""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from typing_extensions import override

from recollect.gradients.measurement import Measurement
from recollect.gradients.objective import Objective
from recollect.gradients.share import Share


class WeightedLosses(Measurement):
    """Inner products from shares, and the gradient of losses with the weights on them.

    Under BatchNorm an example's share holds what other examples' losses owe to it, and only shares
    with equal weights add up to a gradient of anything: uneven ones move weights along directions
    that BatchNorm makes meaningless, and the network learns badly (paper note P8). And parameters
    that are not measured have no shares. So the weights go on the losses, and a second backward
    pass finds the gradient. Where examples do not mix, both are the same.

    Args:
        shares: As for `Measurement`; none if their inner products are all that is needed.
        objective: What the pass was run for, its losses on a graph that is still there.
        parameters: What is differentiated, by name.
        gram: Inner products of the shares, if these are gone.
        row: Likewise.
    """

    def __init__(
        self,
        shares: Sequence[Share],
        objective: Objective,
        parameters: Mapping[str, nn.Parameter],
        *,
        gram: Float[Tensor, "groups groups"] | None = None,
        row: Float[Tensor, "two groups"] | None = None,
    ) -> None:
        super().__init__(shares, objective.groups, objective.scales)
        self._objective, self._parameters = objective, parameters
        self._gram, self._row = gram, row
        self._only: dict[str, Tensor] | None = None

    @override
    def gram(self) -> Float[Tensor, "groups groups"]:
        return super().gram() if self._gram is None else self._gram

    @override
    def row(self) -> Float[Tensor, "two groups"]:
        return super().row() if self._row is None else self._row

    @override
    def combine(self, weights: Float[Tensor, " groups"]) -> dict[str, Tensor]:
        if len(self.groups) > 1:
            return self._of_losses(weights)
        if self._only is None:  # one gradient, which may be asked for again, with another weight
            self._only = self._of_losses(torch.ones_like(weights))
        weight = weights[0]
        return {name: weight * gradient for name, gradient in self._only.items()}

    def _of_losses(self, weights: Float[Tensor, " groups"]) -> dict[str, Tensor]:
        asked = self._objective
        on_losses = self.groups.spread(weights * self.scales) * asked.coefficients
        with torch.enable_grad():
            weighted = asked.losses @ on_losses
        found = torch.autograd.grad(weighted, list(self._parameters.values()), allow_unused=True)
        pairs = zip(self._parameters, found, strict=True)
        return {name: gradient for name, gradient in pairs if gradient is not None}

    @override
    def behind(self, first: Measurement, joined: Measurement) -> Measurement:
        return TwoPasses(first, self, joined)


class TwoPasses(Measurement):
    """Gradients of one pass and, behind them, of another, whose weights are its own matter."""

    def __init__(self, first: Measurement, second: Measurement, joined: Measurement) -> None:
        super().__init__(list(joined.shares.values()), joined.groups, joined.scales)
        self._first, self._second = first, second

    @override
    def combine(self, weights: Float[Tensor, " groups"]) -> dict[str, Tensor]:
        count = len(self._first)
        total = self._first.combine(weights[:count])
        for name, gradient in self._second.combine(weights[count:]).items():
            total[name] = total[name] + gradient if name in total else gradient
        return total
