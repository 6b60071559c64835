"""Gradient surgery: take out of each gradient what points against another."""

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
from recollect.rules.nonnegative import as_array
from recollect.rules.rule import Rule


@final
@dataclass(frozen=True)
class PCGrad(Rule):
    r"""Project each gradient off those it conflicts with, then add as ER does (PCGrad).

        w = g' + mean_i g_i',    where g_k' starts as g_k, and for every other gradient g_j
        g_k' <- g_k' - <g_k', g_j> / |g_j|^2 * g_j    if <g_k', g_j> < 0

    Without conflict this is experience replay. The paper visits the g_j in random order. A rule
    draws nothing, so the most opposed one comes first here: j in ascending order of the cosine
    between g_k and g_j. With two gradients there is nothing to order.

    Args:
        groups: Average the replayed gradients in this many equal groups first. With one group this
            is the two-task case: g against the mean of the replayed gradients.

    Example:
        >>> # g = (1, 0), g_1 = (-1, 1): g' = (1, 1) / 2, g_1' = (0, 1)
        >>> PCGrad()(torch.tensor([[1.0, -1.0], [-1.0, 2.0]]))
        tensor([2.0000, 1.5000])

    References:
        Yu et al., Gradient surgery for multi-task learning, NeurIPS 2020, Algorithm 1.
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
        squared_lengths = products.diagonal()
        # The cosines of row k, but for |g_k|, which changes no order in it.
        cosines = products / np.sqrt(np.maximum(squared_lengths, 1e-300))
        order = cosines.argsort(axis=1, kind="stable")
        projected = np.eye(len(products))
        for k, weights in enumerate(projected):
            for j in order[k]:
                along = products[j] @ weights
                if j != k and along < 0 and squared_lengths[j] > 0:
                    weights[j] -= along / squared_lengths[j]
        shares = np.full(len(products), 1 / (len(products) - 1))
        shares[0] = 1
        return torch.from_numpy(shares @ projected).to(gram)
