"""What a rule is."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

Needs = Literal["nothing", "row", "matrix"]


class Rule(ABC):
    """Turn the incoming gradient g and the replayed gradients g_1..g_K into one target gradient w.

    Every useful w lies in the span of these gradients, so a rule never sees a parameter: it reads
    their inner products and returns one weight per gradient,

        w = weights[0] * g + sum_i weights[i] * g_i.

    Row 0 of the Gram matrix belongs to g. With nothing replayed the learner uses g itself and does
    not call the rule.
    """

    @property
    def needs(self) -> Needs:
        """What must be measured for it; a class attribute may say so as well.

        `"matrix"`: all inner products. `"row"`: those with g and every gradient's own length, row 0
        of the matrix and its diagonal; see `row_weights`. `"nothing"`: the weights never depend on
        the gradients; see `fixed_weights`. The less a rule needs, the faster is a step.
        """
        return "matrix"

    #: Whether it may draw from torch's own generator, which the learner then looks after.
    draws: ClassVar[bool] = True
    #: In how many groups of equal size it averages the g_i first; None if it does not.
    groups: int | None = None

    def __init_subclass__(cls, **options: object) -> None:
        """Refuse a class whose own `__call__` would not be asked."""
        super().__init_subclass__(**options)
        is_half = "__call__" in vars(cls) and "row_weights" not in vars(cls)
        if is_half and cls.row_weights is not Rule.row_weights:
            raise TypeError(
                f"{cls.__name__} has a `__call__` of its own and inherits `row_weights`, which is "
                "asked instead where a row is enough; write `row_weights` as well, or derive from "
                "`Rule`."
            )

    @abstractmethod
    def __call__(self, gram: Float[Tensor, "gradients gradients"]) -> Float[Tensor, " gradients"]:
        """Return one weight per gradient, from the inner products of all pairs of gradients."""

    def row_weights(
        self, products: Sequence[float], squared_lengths: Sequence[float]
    ) -> Sequence[float]:
        """Return the weights of g and g_1..g_K of a rule that needs a row.

        By default, what the rule answers to a matrix in which all else is zero. A rule whose
        arithmetic on these few numbers is faster without tensors says it here again.

        Args:
            products: <g, g> and <g, g_1>..<g, g_K>.
            squared_lengths: |g|^2 and |g_1|^2..|g_K|^2.
        """
        gram = torch.tensor(squared_lengths, dtype=torch.float64).diag()
        gram[0] = gram[:, 0] = torch.tensor(products, dtype=torch.float64)
        weights: list[float] = self(gram).tolist()
        return weights

    def fixed_weights(self, replayed: int) -> tuple[float, ...]:
        """Return the weights of g and g_1..g_K of a rule that needs nothing.

        Args:
            replayed: K.
        """
        zeros = torch.zeros(1 + replayed, 1 + replayed, dtype=torch.float64)
        return tuple(self(zeros).tolist())
