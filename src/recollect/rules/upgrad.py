"""Unconflicting projection of gradients: project each into the cone of steps that harm nobody."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from recollect.ranges import Choice
from recollect.rules.checks import check_groups
from recollect.rules.grouping import weigh_in_groups
from recollect.rules.nonnegative import as_array, least_nonnegative
from recollect.rules.rule import Rule


@final
@dataclass(frozen=True)
class UPGrad(Rule):
    r"""Project each gradient so that it conflicts with none, then add as ER does (UPGrad).

        w = p(g) + mean_i p(g_i),    p(v) = argmin |u - v|    over u with <u, g_k> >= 0 for all k

    Without conflict this is experience replay. p(sum_j a_j g_j) is sum_j b_j g_j with b the
    minimiser of |sum_j b_j g_j|^2 over b >= a.

    Args:
        groups: Average the replayed gradients in this many equal groups first.

    Example:
        >>> # g = (1, 0), g_1 = (-1, 1): p(g) = (1, 1) / 2, p(g_1) = (0, 1)
        >>> UPGrad()(torch.tensor([[1.0, -1.0], [-1.0, 2.0]]))
        tensor([2.0000, 1.5000])

    References:
        Quinton and Rey, Jacobian descent for multi-objective optimization, 2024, Eq. 3, 5 and
        Proposition 1, with the preferences of ER in place of equal ones.
    """

    groups: Annotated[int | None, Choice(10, 5, 2, 1, is_usual=False)] = None

    draws: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_groups(self.groups)

    @override
    def __call__(self, gram: Float[Tensor, "gradients gradients"]) -> Float[Tensor, " gradients"]:
        return weigh_in_groups(gram, self.groups, self._weigh)

    def _weigh(self, gram: Tensor) -> Tensor:
        products = as_array(gram)
        weights = np.zeros(len(products))
        shares = np.full(len(products), 1 / (len(products) - 1))
        shares[0] = 1
        for k, share in enumerate(shares):  # b = a + x, a one-hot and x >= 0
            weights[k] += share
            if products[k].min() < 0:
                weights += share * least_nonnegative(products, -products[k])
        return torch.from_numpy(weights).to(gram)
