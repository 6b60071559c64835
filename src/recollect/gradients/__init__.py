"""MEASURE: inner products and weighted sums of many gradients from one backward pass."""

from recollect.gradients.engine import GradientEngine
from recollect.gradients.groups import Groups
from recollect.gradients.measurement import Measurement
from recollect.gradients.normalization import mixes_examples
from recollect.gradients.objective import Objective
from recollect.gradients.one_by_one import gram_of, one_by_one
from recollect.gradients.tape import Tape

__all__ = [
    "GradientEngine",
    "Groups",
    "Measurement",
    "Objective",
    "Tape",
    "gram_of",
    "mixes_examples",
    "one_by_one",
]
