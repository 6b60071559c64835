"""Principal Gradient Direction, the paper's rule."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, sqrt
from typing import Annotated, ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from recollect.ranges import Choice, Linear, Log, Whole
from recollect.rules.checks import check_groups, check_positive, check_proximal
from recollect.rules.grouping import weigh_in_groups
from recollect.rules.rule import Needs, Rule


@final
@dataclass(frozen=True)
class PrincipalDirection(Rule):
    r"""Turn the incoming gradient towards the replayed ones (principal gradient direction, PGD).

    Minimise, from w = g, the length-weighted angles to all replayed gradients plus a pull to g
    (Eq. 6), the lengths floored:

        f(w) = -sum_i sigmoid(|g_i|) <w, g_i> / (max(target_floor, |w|) * max(norm_floor, |g_i|))
        w <- w - step_size * grad f(w) + pull * (g - w)                                  (Eq. 10)

    With one step this is w = g - lambda grad f(g) (Eq. 12). In the symbols of Eq. 10, step_size is
    lambda = alpha beta / (alpha + beta) and pull is beta / (alpha + beta).

    Args:
        step_size: lambda. Zero returns the incoming gradient alone.
        norm_floor: eps. A gradient shorter than this is divided by it instead of by its length: a
            short gradient belongs to an example already learnt and must not steer w.
        target_floor: Floor of |w|. Without it grad f grows like 1 / |g| and the step explodes
            when the incoming batch is learnt (paper note P2).
        steps: Proximal steps. They cost no further backward pass.
        groups: Average the replayed gradients in this many equal groups first, as the paper advises
            to save backward passes. None treats every example alone.
        pull: Share of the way back to g in every step after the first, between 0 and 1.

    Example:
        >>> rule = PrincipalDirection(step_size=1.0, norm_floor=1.0, target_floor=1.0)
        >>> rule(torch.eye(2))  # sigmoid(1) = 0.7311
        tensor([1.0000, 0.7311])

    References:
        Chen and Lin, Sec. 2.3, Eq. 6 to 12. Where it is ambiguous: paper notes P1, P2, P8.
    """

    draws: ClassVar[bool] = False

    step_size: Annotated[float, Log(3.0, 40.0)] = 10.0
    norm_floor: Annotated[float, Log(0.2, 20.0)] = 1.0
    target_floor: Annotated[float, Log(0.7, 10.0)] = 3.0
    steps: Annotated[int, Whole(1, 10, is_usual=False)] = 1
    groups: Annotated[int | None, Choice(10, 5, 2, 1, is_usual=False)] = None
    pull: Annotated[float, Linear(0.0, 1.0, is_usual=False)] = 0.5

    def __post_init__(self) -> None:
        check_proximal(step_size=self.step_size, steps=self.steps, pull=self.pull)
        check_positive(norm_floor=self.norm_floor, target_floor=self.target_floor)
        check_groups(self.groups)

    @property
    @override
    def needs(self) -> Needs:
        """One step asks for <g, g_i> and lengths alone; the means of groups have products."""
        return "row" if self.steps == 1 and self.groups is None else "matrix"

    @override
    def row_weights(
        self, products: Sequence[float], squared_lengths: Sequence[float]
    ) -> Sequence[float]:
        """One step from g (Eq. 12). On so few numbers, tensors would take ten times as long."""
        floor = self.norm_floor
        lengths = [sqrt(max(square, 0.0)) for square in squared_lengths]  # rounding can leave -0.0
        pulls = [1 / ((1 + exp(-length)) * max(length, floor)) for length in lengths]  # a_i
        pulls[0] = 0.0  # g itself pulls nowhere: note P1
        squared_length = products[0]
        if squared_length <= self.target_floor**2:  # |w| is floored, a constant of f
            along_pull, along_g = self.step_size / self.target_floor, 0.0
        else:
            along_pull = self.step_size / sqrt(squared_length)
            agreement = sum([a * b for a, b in zip(pulls, products, strict=True)])
            along_g = along_pull * agreement / squared_length
        weights = [along_pull * pull for pull in pulls]
        weights[0] = 1 - along_g
        return weights

    @override
    def __call__(self, gram: Float[Tensor, "gradients gradients"]) -> Float[Tensor, " gradients"]:
        return weigh_in_groups(gram, self.groups, self._weigh)

    def _weigh(self, gram: Tensor) -> Tensor:
        lengths = gram.diagonal().clamp_min(0).sqrt()  # |g_k|; rounding can leave -0.0
        pulls = lengths.sigmoid() / lengths.clamp_min(self.norm_floor)  # a_i
        pulls[0] = 0  # g itself pulls nowhere: note P1
        weights = torch.zeros_like(pulls)  # w = sum_k weights[k] g_k, at first w = g
        weights[0] = 1
        products = gram[0]  # <w, g_k>
        for step in range(self.steps):
            if step:
                products = gram @ weights
            moved = weights - self.step_size * self._gradient(pulls, weights, products)
            if step:
                moved -= self.pull * weights
                moved[0] += self.pull
            weights = moved
        return weights

    def _gradient(self, pulls: Tensor, weights: Tensor, products: Tensor) -> Tensor:
        """Return grad f at w, as weights of the same gradients (Eq. 11)."""
        squared_length = float(weights @ products)
        if squared_length <= self.target_floor**2:  # |w| is floored, a constant of f
            return pulls * (-1 / self.target_floor)
        length = squared_length**0.5
        along_w = float(pulls @ products) / squared_length
        return (along_w * weights - pulls) / length
