"""Experience replay's rule on gradients that are clipped one by one."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Annotated, ClassVar, final

from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from recollect.ranges import Log
from recollect.rules.checks import check_positive
from recollect.rules.rule import Needs, Rule


@final
@dataclass(frozen=True)
class ClippedSum(Rule):
    r"""Clip each replayed gradient, then add their weighted mean to the incoming one.

        w = g + weight * mean_i min(1, clip / |g_i|) g_i

    This is PGD without the direction of w. As long as |g| is below PGD's floor of |w|, its
    step is this one with clip = eps and a weight of lambda K sigmoid(|g_i|) / (floor eps): about
    twenty times ER's with usual settings. Under plain SGD, training with
    such a weight fails without clipping.

    Args:
        replay_weight: Weight of the mean. One is experience replay, if no gradient is longer than
            `clip`.
        clip: Largest length of a replayed gradient.

    Example:
        >>> import torch
        >>> gradients = torch.tensor([[1.0, 0.0], [0.0, 4.0], [0.0, 0.5]])
        >>> ClippedSum(replay_weight=2.0, clip=1.0)(gradients @ gradients.T)
        tensor([1.0000, 0.2500, 1.0000])

    References:
        Ours. Clipping by example is from private learning (Abadi et al., Deep Learning with
        Differential Privacy).
    """

    needs: ClassVar[Needs] = "row"
    draws: ClassVar[bool] = False

    replay_weight: Annotated[float, Log(1.0, 60.0)] = 20.0
    clip: Annotated[float, Log(0.2, 10.0)] = 1.0

    def __post_init__(self) -> None:
        check_positive(replay_weight=self.replay_weight, clip=self.clip)

    @override
    def __call__(self, gram: Float[Tensor, "gradients gradients"]) -> Float[Tensor, " gradients"]:
        lengths = gram.diagonal().clamp_min(0).sqrt()  # |g_k|; rounding can leave -0.0
        weights = (self.replay_weight * self.clip / (len(gram) - 1)) / lengths.clamp_min(self.clip)
        weights[0] = 1
        return weights

    @override
    def row_weights(
        self, products: Sequence[float], squared_lengths: Sequence[float]
    ) -> Sequence[float]:
        longest = self.replay_weight * self.clip / (len(products) - 1)
        weights = [longest / max(sqrt(max(s, 0.0)), self.clip) for s in squared_lengths]
        weights[0] = 1.0
        return weights
