"""What a rule is."""

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

Needs = Literal["nothing", "matrix"]


class Rule(ABC):
    """Turn the incoming gradient g and the replayed gradients g_1..g_K into one target gradient w.

    Every useful w lies in the span of these gradients, so a rule never sees a parameter: it reads
    their inner products and returns one weight per gradient,

        w = weights[0] * g + sum_i weights[i] * g_i.

    Row 0 of the Gram matrix belongs to g. With nothing replayed the learner uses g itself and does
    not call the rule.
    """

    #: What must be measured: `"matrix"`, all inner products, or `"nothing"`. A rule whose weights
    #: never depend on the gradients saves the learner the measuring; see `fixed_weights`.
    needs: ClassVar[Needs] = "matrix"
    #: Whether it may draw from torch's own generator, which the learner then looks after.
    draws: ClassVar[bool] = True
    #: In how many groups of equal size it averages the g_i first; None if it does not.
    groups: int | None = None

    @abstractmethod
    def __call__(self, gram: Float[Tensor, "gradients gradients"]) -> Float[Tensor, " gradients"]:
        """Return one weight per gradient, from the inner products of all pairs of gradients."""

    def fixed_weights(self, replayed: int) -> tuple[float, ...]:
        """Return the weights of g and g_1..g_K of a rule that needs nothing.

        Args:
            replayed: K.
        """
        zeros = torch.zeros(1 + replayed, 1 + replayed, dtype=torch.float64)
        return tuple(self(zeros).tolist())
