"""What a benchmark is: a stream for the learner, held-out sets for the evaluator, a model."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, pairwise

from torch import Tensor, nn

from recollect.benchmarks.defaults import Defaults
from recollect.datasets import Examples
from recollect.models import seeded
from recollect.streams import InputTransform, Stream


@dataclass(frozen=True, eq=False)
class BenchmarkSegment:
    """What an evaluator knows of one segment.

    Inputs are gathered and transformed each time `test` or `validation` is read, so ten permuted
    test sets cost the memory of the one in use.

    Args:
        name: The name of the stream's segment.
        classes: The labels that occur in it.
        transform: What the stream does to the segment's inputs.
        test_source: The test part of the data set.
        test_indices: Which of it belong to this segment.
        train_source: The training part of the data set.
        validation_indices: Which of it are held out here; the stream gives none of them.
    """

    name: str
    classes: tuple[int, ...]
    transform: InputTransform
    test_source: Examples
    test_indices: Tensor
    train_source: Examples
    validation_indices: Tensor

    @property
    def test(self) -> Examples:
        """For final numbers; read it once."""
        return self._gather(self.test_source, self.test_indices)

    @property
    def validation(self) -> Examples:
        """Training examples held out of the stream, to choose hyper-parameters on."""
        return self._gather(self.train_source, self.validation_indices)

    def _gather(self, source: Examples, indices: Tensor) -> Examples:
        chosen = source.take(indices)
        return Examples(self.transform(chosen.inputs), chosen.labels)


@dataclass(frozen=True, eq=False)
class Benchmark:
    """A stream, the held-out sets that test what was learnt, and the usual model.

    To change the stream, replace it: `dataclasses.replace(benchmark, stream=blurred_boundaries(
    benchmark.stream, width=200))` keeps segments, model and defaults.

    Args:
        name: Such as `"mnist-split"`.
        protocol: Whose version of the benchmark, such as `"paper"`.
        seed: Decides the stream and, unless told otherwise, the model.
        stream: The single pass for the learner.
        segments: What the evaluator knows of each segment of the stream.
        transform: Maps stored inputs to what the model reads. Memory and stream hold stored inputs.
        num_classes: Width of the one shared head.
        defaults: Settings it is usually run with.
        build_model: Builds the usual model.
    """

    name: str
    protocol: str
    seed: int
    stream: Stream
    segments: tuple[BenchmarkSegment, ...]
    transform: Callable[[Tensor], Tensor]
    num_classes: int
    defaults: Defaults
    build_model: Callable[[], nn.Module]

    def model(self, seed: int | None = None) -> nn.Module:
        """Build the benchmark's model, its weights drawn from `seed` or from the benchmark's."""
        return seeded(self.build_model, self.seed if seed is None else seed)

    def fresh_stream(self) -> Stream:
        """Return the stream at its beginning, for another learner."""
        return self.stream.fresh()

    def samples(self, num: int = 10) -> list[tuple[str, Tensor]]:
        """Return the first `num` inputs of each stretch of the stream as the learner gets them.

        The segment's transform is applied to the stored inputs, the model's scaling is not. So
        bytes of images stay bytes, ready to be drawn. Reading them does not move the stream. Where
        boundaries are blurred, the stretch of a segment shows the mixture that arrives there.
        """
        if num < 1:
            raise ValueError(f"`num` is {num}; pass at least 1.")
        stops = [0, *accumulate(self.stream.plan.segment_sizes)]
        return [
            (segment.name, self.stream.peek(start, min(start + num, stop))[0])
            for segment, (start, stop) in zip(self.stream.segments, pairwise(stops), strict=True)
        ]
