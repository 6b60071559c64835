"""One formula per kind of node: each example's gradient from what the node saved."""

from recollect.gradients.formulas.table import Formula, Formulas, formula
from recollect.gradients.formulas.visit import Visit

__all__ = ["Formula", "Formulas", "Visit", "formula"]
