"""WEIGH: from measured gradients to the target gradient w, and what is told of it."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from recollect.gradients import Measurement, Products
from recollect.learner.checks import check_gram, checked_row, checked_row_weights, checked_weights
from recollect.network.passes import Found
from recollect.rules import Rule


@dataclass(slots=True)
class Weighed:
    """The target gradient, and what was found out on the way to it.

    Attributes:
        target: w, by parameter.
        weights: Of g and the g_i in it, if the rule was asked.
        row: <g, g_k> and |g_k|^2, if a row was measured.
        gram: All inner products, if they were measured.
    """

    target: dict[str, Tensor]
    weights: Float[Tensor, " gradients"] | None = None
    row: Float[Tensor, "two gradients"] | None = None
    gram: Float[Tensor, "gradients gradients"] | None = None


def products_for(rule: Rule, *, measure_all: bool) -> Products:
    """Say which inner products are measured for a rule."""
    if rule.needs != "row":
        return "matrix"
    return "both" if measure_all else "row"


@torch.no_grad()
def weigh(rule: Rule, found: Found, products: Products) -> Weighed:
    """Ask the rule, unless its weights are fixed: then w was taken at once."""
    measured = found.gradients
    if not isinstance(measured, Measurement):
        return Weighed(measured)
    row, gram = None, None
    if products != "row":
        gram = check_gram(measured.gram())
    if products == "matrix":
        assert gram is not None
        weights = checked_weights(rule(gram), gram, rule)
    else:
        row = measured.row()
        # A few numbers: arithmetic without tensors is several times faster.
        of_products, of_squares = checked_row(row)
        answer = rule.row_weights(of_products, of_squares)
        weights = row.new_tensor(checked_row_weights(answer, len(of_products), rule))
    return Weighed(measured.combine(weights), weights, row, gram)
