"""Look at a learner from outside: in full after each segment, at a few examples in between."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, final

import torch
from torch import Tensor

from recollect.benchmarks import Benchmark, BenchmarkSegment
from recollect.datasets import Examples
from recollect.experiments.records.record import CurvePoint
from recollect.experiments.specs.cell import Cell
from recollect.learner import Learner
from recollect.metrics import evaluate, fitting_batch_size
from recollect.streams import derived_generator


@final
class Looker:
    """Decides when to evaluate a run, and counts right answers then.

    Args:
        benchmark: Whose held-out examples.
        cell: How often, and on how many of them.
    """

    def __init__(self, benchmark: Benchmark, cell: Cell) -> None:
        self._on: Literal["test", "validation"] = cell.evaluation["on"]
        self._segments = benchmark.segments
        self._boundaries = benchmark.stream.boundaries
        num_batches, points = len(benchmark.stream), cell.evaluation["points"]
        self._due = frozenset(
            {max(1, round(num_batches * k / points)) for k in range(1, points + 1)}
        )
        #: Numbers of batches after which there is something to look at.
        self.moments = self._due | frozenset(self._boundaries)
        each = max(1, cell.evaluation["examples"] // len(self._segments))
        chosen = [_few(part, each, self._on, k) for k, part in enumerate(self._segments)]
        self._sizes = [len(part) for part in chosen]
        self._inputs = torch.cat([part.inputs for part in chosen])
        self._labels = torch.cat([part.labels for part in chosen])

    @property
    def segment_names(self) -> tuple[str, ...]:
        """What the evaluator calls the segments."""
        return tuple(segment.name for segment in self._segments)

    def totals(self) -> tuple[int, ...]:
        """Count the held-out examples of each segment."""
        if self._on == "test":
            return tuple(len(segment.test_indices) for segment in self._segments)
        return tuple(len(segment.validation_indices) for segment in self._segments)

    def segment_at(self, batches_given: int) -> int:
        """Return the number of the segment that the last batch given belongs to."""
        return min(bisect_left(self._boundaries, batches_given), len(self._boundaries) - 1)

    def num_over(self, batches_given: int) -> int:
        """Count the segments that are over."""
        return bisect_right(self._boundaries, batches_given)

    def is_due(self, batches_given: int) -> bool:
        """Say whether the curve has a point here."""
        return batches_given in self._due

    def row(self, predict: Callable[[Tensor], Tensor]) -> list[int]:
        """Count right answers on every segment, met or not: a row of the accuracy matrix."""
        return [correct for correct, _ in evaluate(predict, self._segments, on=self._on)]

    def point(self, learner: Learner, batches_given: int) -> CurvePoint:
        """Count right answers on a few examples of each segment met so far."""
        sizes = self._sizes[: self.segment_at(batches_given) + 1]
        inputs, labels = self._inputs[: sum(sizes)], self._labels[: sum(sizes)]
        answers = learner.predict(inputs, batch_size=fitting_batch_size(inputs)).argmax(1).cpu()
        parts: tuple[Tensor, ...] = torch.split(answers == labels, sizes)
        return CurvePoint(learner.seen, tuple(int(part.sum()) for part in parts), tuple(sizes))


def _few(segment: BenchmarkSegment, count: int, on: str, segment_index: int) -> Examples:
    """Draw the same few held-out examples for every method and seed."""
    generator = derived_generator(0, "any-time curve", str(segment_index))
    held_out = segment.test_indices if on == "test" else segment.validation_indices
    drawn = held_out[torch.randperm(len(held_out), generator=generator)[:count]]
    if on == "test":
        return replace(segment, test_indices=drawn).test
    return replace(segment, validation_indices=drawn).validation
