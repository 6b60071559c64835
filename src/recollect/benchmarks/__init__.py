"""A benchmark in one call: a stream for the learner, test sets for the evaluator, a model."""

from typing import TYPE_CHECKING

from recollect.benchmarks.defaults import Defaults
from recollect.benchmarks.protocols import RECIPES, BenchmarkName, ProtocolName, Recipe
from recollect.lazy import import_when_asked

if TYPE_CHECKING:
    from recollect.benchmarks.benchmark import Benchmark, BenchmarkSegment
    from recollect.benchmarks.build import benchmark, benchmark_from, benchmark_from_stream
    from recollect.benchmarks.groups import benchmark_from_groups
    from recollect.benchmarks.test_part import with_test_part

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
    "benchmark_from_groups",
    "benchmark_from_stream",
    "with_test_part",
]

# Specs are read with the tables of protocols alone.
import_when_asked(
    __name__,
    {
        "Benchmark": "recollect.benchmarks.benchmark",
        "BenchmarkSegment": "recollect.benchmarks.benchmark",
        "benchmark": "recollect.benchmarks.build",
        "benchmark_from": "recollect.benchmarks.build",
        "benchmark_from_groups": "recollect.benchmarks.groups",
        "benchmark_from_stream": "recollect.benchmarks.build",
        "with_test_part": "recollect.benchmarks.test_part",
    },
)
