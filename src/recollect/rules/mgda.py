"""Multiple-gradient descent: the shortest mean of all gradients."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from recollect.ranges import Choice
from recollect.rules.checks import check_groups
from recollect.rules.grouping import weigh_in_groups
from recollect.rules.nonnegative import as_array, shortest_in_hull
from recollect.rules.rule import Rule


@final
@dataclass(frozen=True)
class MGDA(Rule):
    r"""Step along the shortest vector between all gradients (multiple-gradient descent, MGDA).

        w = 2 sum_k x_k g_k,    x = argmin |sum_k x_k g_k|^2,    x_k >= 0, sum_k x_k = 1

    No gradient has a negative product with w: the step raises no loss that it knows of, and it
    vanishes where no such step exists. The problem is solved exactly, where published code takes
    steps of Frank and Wolfe. The factor 2 makes w that of ER when all gradients are
    equal.

    Args:
        groups: Average the replayed gradients in this many equal groups first.

    Example:
        >>> # g = (2, 0), g_1 = (0, 1): the shortest vector is (2, 4) / 5
        >>> MGDA()(torch.tensor([[4.0, 0.0], [0.0, 1.0]]))
        tensor([0.4000, 1.6000])

    References:
        Desideri, Multiple-gradient descent algorithm for multiobjective optimization, 2012; Sener
        and Koltun, Multi-task learning as multi-objective optimization, NeurIPS 2018, Eq. 3.
    """

    groups: Annotated[int | None, Choice(10, 5, 2, 1, is_usual=False)] = None

    draws: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_groups(self.groups)

    @override
    def __call__(self, gram: Float[Tensor, "gradients gradients"]) -> Float[Tensor, " gradients"]:
        return weigh_in_groups(gram, self.groups, self._weigh)

    def _weigh(self, gram: Tensor) -> Tensor:
        return torch.from_numpy(2 * shortest_in_hull(as_array(gram))).to(gram)
