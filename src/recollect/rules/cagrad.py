"""Conflict-averse gradient descent: near ER's step, the one that helps the worst gradient most."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, final

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor
from typing_extensions import override

from recollect.ranges import Choice, Linear
from recollect.rules.checks import check_groups
from recollect.rules.grouping import weigh_in_groups
from recollect.rules.nonnegative import as_array, shortest_in_hull
from recollect.rules.rule import Rule

_PRECISION: Final = 1e-9


@final
@dataclass(frozen=True)
class CAGrad(Rule):
    r"""Near the mean gradient, take the step that helps the worst gradient most (CAGrad).

        w = 2 argmax_d min_k <g_k, d>    over |d - g_0| <= radius |g_0|,
        g_0 = (g + mean_i g_i) / 2

    Its dual has one unknown share x_k >= 0 per gradient, sum_k x_k = 1: with v = sum_k x_k g_k,

        d = g_0 + radius |g_0| / |v| * v,    x = argmin <v, g_0> + radius |g_0| |v|.

    A radius of zero is experience replay. Where v vanishes no direction helps everybody, and the
    step is ER's. w is not divided by 1 + radius^2, as some published code does.

    Args:
        radius: c, how far the step may be from ER's, as a share of its length.
        groups: Average the replayed gradients in this many equal groups first.

    Example:
        >>> # g = (1, 0), g_1 = (0, 1): g_0 is best for both, and d lies further along it
        >>> CAGrad(radius=0.5)(torch.eye(2))
        tensor([1.5000, 1.5000])

    References:
        Liu et al., Conflict-averse gradient descent for multi-task learning, NeurIPS 2021,
        Algorithm 1, with the mean of ER in place of that over all gradients.
    """

    radius: Annotated[float, Linear(0.1, 0.9)] = 0.5
    groups: Annotated[int | None, Choice(10, 5, 2, 1, is_usual=False)] = None

    draws: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_groups(self.groups)
        if not (math.isfinite(self.radius) and self.radius >= 0):
            raise ValueError(f"`radius` is {self.radius!r}; pass a finite number, 0 or above.")

    @override
    def __call__(self, gram: Float[Tensor, "gradients gradients"]) -> Float[Tensor, " gradients"]:
        return weigh_in_groups(gram, self.groups, self._weigh)

    def _weigh(self, gram: Tensor) -> Tensor:
        products = as_array(gram)
        mean = np.full(len(products), 0.5 / (len(products) - 1))
        mean[0] = 0.5
        limit = self.radius * math.sqrt(max(0.0, float(mean @ products @ mean)))
        weights = mean
        if limit > 0:
            shares, length = _shares(products, mean, limit)
            longest = math.sqrt(products.diagonal().max())
            if length > 1e-8 * longest:
                weights = mean + limit / length * shares
        return torch.from_numpy(2 * weights).to(gram)


def _shares(products: ndarray, mean: ndarray, limit: float) -> tuple[ndarray, float]:
    """Return x and |v|.

    For a number t in place of |v|, <v, g_0> + limit (|v|^2 / t + t) / 2 is least where v + t g_0 /
    limit is the shortest vector between the g_k, all moved by t g_0 / limit. The t wanted is |v|,
    and |v| - t changes its sign there and nowhere else.
    """
    longest = math.sqrt(products.diagonal().max())
    low, high, above, below = 0.0, longest, longest, -longest  # bounds of t, and |v| - t there
    t = longest
    for turn in range(100):
        shift = t / limit
        with_mean = shift * (products @ mean)
        moved = products + with_mean + with_mean[:, None] + shift * float(mean @ with_mean)
        shares = shortest_in_hull(moved)
        length = math.sqrt(max(0.0, float(shares @ products @ shares)))
        if abs(length - t) <= _PRECISION * longest or high - low <= _PRECISION * longest:
            break
        if length > t:
            low, above, below = t, length - t, below / 2
        else:
            high, above, below = t, above / 2, length - t
        # |v| is t at once where v is one of the g_k; in between, regula falsi as Illinois has it.
        t = (low * below - high * above) / (below - above)
        t = length if turn == 0 and low < length < high else t
    return shares, length
