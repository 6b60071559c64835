"""Task-free online continual learning for PyTorch."""

from typing import TYPE_CHECKING

from recollect.lazy import import_when_asked

if TYPE_CHECKING:
    from recollect.benchmarks import benchmark
    from recollect.learner import LabelMap, Learner, StepReport
    from recollect.memory import Memory
    from recollect.methods import METHODS, Method, method, methods
    from recollect.ragged import Ragged, pad

__version__ = "0.1.0"

__all__ = [
    "METHODS",
    "LabelMap",
    "Learner",
    "Memory",
    "Method",
    "Ragged",
    "StepReport",
    "benchmark",
    "method",
    "methods",
    "pad",
]

# The command answers in a fraction of the time that torch takes to import.
import_when_asked(
    __name__,
    {
        "METHODS": "recollect.methods",
        "LabelMap": "recollect.learner",
        "Learner": "recollect.learner",
        "Memory": "recollect.memory",
        "Method": "recollect.methods",
        "Ragged": "recollect.ragged",
        "StepReport": "recollect.learner",
        "benchmark": "recollect.benchmarks",
        "method": "recollect.methods",
        "methods": "recollect.methods",
        "pad": "recollect.ragged",
    },
    submodules=(
        *(
            "augment",
            "benchmarks",
            "datasets",
            "errors",
            "gradients",
            "learner",
            "memory",
            "metrics",
        ),
        *("models", "retrieval", "rules", "storage", "streams"),
    ),
)
