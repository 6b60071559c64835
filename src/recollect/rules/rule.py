"""What a rule is."""

from abc import ABC, abstractmethod
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor


class Rule(ABC):
    """Turn the incoming gradient g and the replayed gradients g_1..g_K into one target gradient w.

    Every useful w lies in the span of these gradients, so a rule never sees a parameter: it reads
    their inner products and returns one weight per gradient,

        w = weights[0] * g + sum_i weights[i] * g_i.

    Row 0 of the Gram matrix belongs to g. With nothing replayed the learner uses g itself and does
    not call the rule.
    """

    #: A rule whose weights never depend on the gradients saves the learner the measuring, and is
    #: asked with a Gram matrix of zeros.
    needs_gram: ClassVar[bool] = True

    @abstractmethod
    def __call__(self, gram: Float[Tensor, "gradients gradients"]) -> Float[Tensor, " gradients"]:
        """Return one weight per gradient, from the inner products of all pairs of gradients."""
