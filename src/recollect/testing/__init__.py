"""Checks to run on a part, formula, stream or tracker of your own before you trust it.

Each raises AssertionError with a sentence about what broke. Our own tests run them on every part.
"""

from recollect.testing.formula import check_formula
from recollect.testing.objective import check_objective
from recollect.testing.retrieval import check_retrieval
from recollect.testing.rule import check_rule
from recollect.testing.storage import check_storage
from recollect.testing.streams import check_stream
from recollect.testing.tracker import check_tracker

__all__ = [
    "check_formula",
    "check_objective",
    "check_retrieval",
    "check_rule",
    "check_storage",
    "check_stream",
    "check_tracker",
]
