"""The paper's framework: write f, get a rule."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from recollect.rules.checks import check_proximal
from recollect.rules.rule import Needs, Rule

Objective = Callable[[Tensor, Tensor, Tensor], Tensor]


@final
@dataclass(frozen=True)
class ProximalRule(Rule):
    r"""Descend from g on any f of your own, with a pull back to g (the proximal framework).

        argmin_w f(w) + |w - g|^2 / (2 alpha),    by  w <- w - step_size grad f(w) + pull (g - w)

    Within the span of the gradients f can only depend on the inner products <w, g_i> and on |w|^2;
    it is written as a differentiable function of these. Autograd runs on those few numbers, never
    on the model.

    Args:
        objective: `f(products, squared_length, lengths) -> scalar`, with `products[i]` = <w, g_i>,
            `squared_length` = |w|^2 and `lengths[i]` = |g_i| (constants).
        step_size: lambda.
        steps: Proximal steps, the first from w = g.
        pull: Share of the way back to g in every step after the first, between 0 and 1.

    Example:
        Experience replay is f(w) = -<w, mean g_i>:

        >>> rule = ProximalRule(lambda products, squared_length, lengths: -products.mean())
        >>> rule(torch.eye(3))
        tensor([1.0000, 0.5000, 0.5000])

    References:
        Chen and Lin, Sec. 2.2, Eq. 3, 8 and 10.
    """

    draws: ClassVar[bool] = False

    objective: Objective
    step_size: float = 1.0
    steps: int = 1
    pull: float = 0.5

    def __post_init__(self) -> None:
        check_proximal(step_size=self.step_size, steps=self.steps, pull=self.pull)

    @property
    @override
    def needs(self) -> Needs:
        """From w = g, the first step asks for <g, g_i> and lengths alone."""
        return "row" if self.steps == 1 else "matrix"

    @override
    def __call__(self, gram: Float[Tensor, "gradients gradients"]) -> Float[Tensor, " gradients"]:
        lengths = gram.diagonal()[1:].clamp_min(0).sqrt()
        at_g = torch.zeros_like(gram[0])
        at_g[0] = 1
        weights = at_g
        for step in range(self.steps):
            descended = weights - self.step_size * self._gradient(gram, lengths, weights)
            weights = descended if step == 0 else descended + self.pull * (at_g - weights)
        return weights

    def _gradient(self, gram: Tensor, lengths: Tensor, weights: Tensor) -> Tensor:
        """Return grad f as weights: sum_i (df/d<w,g_i>) g_i + 2 (df/d|w|^2) w."""
        products = gram @ weights
        with torch.enable_grad():
            inner = products[1:].detach().requires_grad_()
            # Rounding can leave a length below 0, and a square root of it NaN.
            squared_length = (weights @ products).clamp_min(0).detach().requires_grad_()
            value = self.objective(inner, squared_length, lengths)
            if not (isinstance(value, Tensor) and value.requires_grad):
                raise TypeError(
                    f"`objective` returned {value!r}; return a tensor computed from `products` or "
                    "`squared_length`, not detached."
                )
            if value.ndim != 0:
                raise ValueError(
                    f"`objective` returned shape {tuple(value.shape)}; return a single number."
                )
            by_product, by_length = torch.autograd.grad(
                value, (inner, squared_length), allow_unused=True, materialize_grads=True
            )
        gradient = 2 * by_length * weights
        gradient[1:] += by_product
        return gradient
