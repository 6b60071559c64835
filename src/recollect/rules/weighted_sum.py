"""Experience replay's rule with the weight that the paper's framework leaves open."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, final

from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from recollect.ranges import Log
from recollect.rules.checks import check_positive
from recollect.rules.rule import Needs, Rule


@final
@dataclass(frozen=True)
class WeightedSum(Rule):
    r"""Add the mean replayed gradient to the incoming one, with a weight (weighted ER).

        w = g + lambda * mean_i g_i

    The minimiser of |w - g|^2 / (2 lambda) - <g_ref, w> with g_ref the mean of the replayed
    gradients. Experience replay is the case lambda = 1. PGD has a lambda too, and gives replay
    several times the weight that ER gives it. This rule has the weight and nothing else, so it
    separates the effect of PGD's weight from that of its direction.

    Args:
        replay_weight: lambda. One is experience replay.

    Example:
        >>> import torch
        >>> WeightedSum(replay_weight=3.0)(torch.eye(3))
        tensor([1.0000, 1.5000, 1.5000])

    References:
        Ours. The problem is Chen and Lin, Sec. 2.2, Eq. 3 with the f of Eq. 4.
    """

    replay_weight: Annotated[float, Log(0.5, 20.0)] = 3.0

    needs: ClassVar[Needs] = "nothing"
    draws: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_positive(replay_weight=self.replay_weight)

    @override
    def __call__(self, gram: Float[Tensor, "gradients gradients"]) -> Float[Tensor, " gradients"]:
        return gram.new_tensor(self.fixed_weights(len(gram) - 1))

    @override
    def fixed_weights(self, replayed: int) -> tuple[float, ...]:
        return (1.0, *(self.replay_weight / replayed,) * replayed)
