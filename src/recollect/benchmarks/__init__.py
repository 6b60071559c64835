"""A benchmark in one call: a stream for the learner, test sets for the evaluator, a model."""

from typing import TYPE_CHECKING

from recollect.benchmarks.defaults import Defaults
from recollect.benchmarks.protocols import RECIPES, BenchmarkName, ProtocolName, Recipe
from recollect.lazy import import_when_asked

if TYPE_CHECKING:
    from recollect.benchmarks.benchmark import Benchmark, BenchmarkSegment
    from recollect.benchmarks.build import benchmark, benchmark_from, benchmark_from_stream

__all__ = [
    "RECIPES",
    "Benchmark",
    "BenchmarkName",
    "BenchmarkSegment",
    "Defaults",
    "ProtocolName",
    "Recipe",
    "benchmark",
    "benchmark_from",
    "benchmark_from_stream",
]

# Specs are read with the tables of protocols alone.
import_when_asked(
    __name__,
    {
        "Benchmark": "recollect.benchmarks.benchmark",
        "BenchmarkSegment": "recollect.benchmarks.benchmark",
        "benchmark": "recollect.benchmarks.build",
        "benchmark_from": "recollect.benchmarks.build",
        "benchmark_from_stream": "recollect.benchmarks.build",
    },
)
