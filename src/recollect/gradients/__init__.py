"""Measure per-example gradients: their inner products and weighted sums, from one pass."""

from recollect.gradients.batch_norm import mixes_examples
from recollect.gradients.engine import GradientEngine
from recollect.gradients.formulas import Formula, Visit, formula
from recollect.gradients.groups import Groups
from recollect.gradients.measurement import Measurement
from recollect.gradients.objective import Objective, Products
from recollect.gradients.one_by_one import gram_of, one_by_one

__all__ = [
    "Formula",
    "GradientEngine",
    "Groups",
    "Measurement",
    "Objective",
    "Products",
    "Visit",
    "formula",
    "gram_of",
    "mixes_examples",
    "one_by_one",
]
