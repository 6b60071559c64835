"""What a backward pass is run for."""

from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float
from torch import Tensor

from recollect.gradients.groups import Groups

#: Which inner products of gradients: all of them, those with the first gradient and squared
#: lengths, or both.
Products = Literal["matrix", "row", "both"]


@dataclass(frozen=True, slots=True)
class Objective:
    """Whose gradients are wanted, from which losses.

    Attributes:
        losses: One loss per example.
        coefficients: The backward pass is that of `coefficients . losses`.
        groups: Which examples belong together; a group's share is the sum over its examples.
        scales: Factor that turns a group's share into the gradient that is meant.
        products: What will be asked for, where it must be known in advance.
    """

    losses: Float[Tensor, " examples"]
    coefficients: Float[Tensor, " examples"]
    groups: Groups
    scales: Float[Tensor, " groups"]
    products: Products = "matrix"
