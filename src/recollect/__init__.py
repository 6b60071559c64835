"""Task-free online continual learning for PyTorch."""

from recollect.benchmarks import benchmark
from recollect.learner import Learner, StepReport
from recollect.memory import Memory
from recollect.methods import METHODS, Method, method, methods

__version__ = "0.1.0"

__all__ = [
    "METHODS",
    "Learner",
    "Memory",
    "Method",
    "StepReport",
    "benchmark",
    "method",
    "methods",
]
