"""Experience replay's rule."""

from dataclasses import dataclass
from typing import ClassVar, final

from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from recollect.rules.rule import Needs, Rule


@final
@dataclass(frozen=True)
class GradientSum(Rule):
    r"""Add the mean replayed gradient to the incoming one (experience replay, ER).

        w = g + mean_i g_i

    The minimiser of |w - g|^2 / 2 - <g_ref, w> with g_ref the mean of the replayed gradients.

    Example:
        >>> import torch
        >>> GradientSum()(torch.eye(3))
        tensor([1.0000, 0.5000, 0.5000])

    References:
        Chen and Lin, Sec. 2.2, Eq. 4 and 5.
    """

    needs: ClassVar[Needs] = "nothing"
    draws: ClassVar[bool] = False

    @override
    def __call__(self, gram: Float[Tensor, "gradients gradients"]) -> Float[Tensor, " gradients"]:
        return gram.new_tensor(self.fixed_weights(len(gram) - 1))

    @override
    def fixed_weights(self, replayed: int) -> tuple[float, ...]:
        return (1.0, *(1 / replayed,) * replayed)
