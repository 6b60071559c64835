"""A benchmark in one call: a stream for the learner, test sets for the evaluator, a model."""

from recollect.benchmarks.benchmark import Benchmark, BenchmarkSegment, Defaults
from recollect.benchmarks.build import benchmark, benchmark_from, benchmark_from_stream
from recollect.benchmarks.protocols import RECIPES, BenchmarkName, ProtocolName, Recipe

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
