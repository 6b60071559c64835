"""Benchmarks whose segments you name: each example says which one it belongs to."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from torch import Tensor, nn

from recollect.benchmarks.benchmark import Benchmark, BenchmarkSegment
from recollect.benchmarks.build import benchmark_from_stream
from recollect.benchmarks.cut import hold_out
from recollect.datasets import LabelledData
from recollect.streams import Plan, Segment, Stream
from recollect.streams.sampling import draw_examples
from recollect.streams.segment import classes_in


def benchmark_from_groups(  # noqa: PLR0913 - each is one free choice, and most have defaults
    data: LabelledData,
    *,
    train_groups: Tensor,
    test_groups: Tensor,
    names: Sequence[str],
    examples_per_segment: int | None = None,
    validation_per_segment: int = 0,
    keeps_order: bool = False,
    seed: int = 0,
    batch_size: int = 10,
    transform: Callable[[Tensor], Tensor] | None = None,
    model: Callable[[], nn.Module] | None = None,
) -> Benchmark:
    """Build a benchmark of your own data, cut as you like: by place, by camera, by month.

    Args:
        data: What `recollect.datasets` loaded or you put together.
        train_groups: For each training example, the number of its segment. Examples with a number
            that has no name are left out.
        test_groups: The same for each test example.
        names: Names of the segments, in the order in which they arrive.
        examples_per_segment: Exactly this many in each; all that are not held out if None.
        validation_per_segment: Hold out this many for each segment.
        keeps_order: Within a segment, examples arrive in their order in `data.train`, as those of
            data with a time do. Otherwise in an order drawn from the seed.
        seed: Decides subsets, orders, held-out examples and the model.
        batch_size: Examples per batch.
        transform: As in `benchmark_from`.
        model: As in `benchmark_from`.

    Raises:
        ValueError: A segment has no training or no test examples, or too few.

    Example:
        >>> import torch
        >>> from recollect.datasets import Examples
        >>> part = Examples(torch.zeros(8, 5), torch.arange(8) % 2)
        >>> places = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
        >>> mine = benchmark_from_groups(
        ...     LabelledData("mine", train=part, test=part, class_names=("a", "b")),
        ...     train_groups=places, test_groups=places, names=("north", "south"),
        ... )
        >>> [(segment.name, len(segment.test)) for segment in mine.segments]
        [('north', 4), ('south', 4)]
    """
    _check_groups("train_groups", train_groups, len(data.train))
    _check_groups("test_groups", test_groups, len(data.test))
    segments, orders, held_out, tested = [], [], [], []
    for number, name in enumerate(names):
        pool = (train_groups == number).nonzero().flatten()
        tested.append((test_groups == number).nonzero().flatten())
        if not len(pool) or not len(tested[-1]):
            part = "training" if not len(pool) else "test"
            raise ValueError(
                f"segment `{name}` has no {part} examples; cut the data otherwise, or hold out "
                "another share for tests."
            )
        kept, rest = hold_out(pool, validation_per_segment, seed=seed, segment_name=name)
        held_out.append(kept)
        orders.append(
            draw_examples(
                rest, examples_per_segment, seed=seed, segment_name=name, keeps_order=keeps_order
            )
        )
        segments.append(Segment(name, tuple(classes_in(data.train.labels[pool]))))
    stream = Stream(data.train, segments, Plan.by_segment(orders, batch_size=batch_size))
    own = benchmark_from_stream(data, stream, seed=seed, transform=transform, model=model)
    return replace(
        own,
        segments=tuple(
            BenchmarkSegment(
                name=segment.name,
                classes=segment.classes,
                transform=segment.transform,
                test_source=data.test,
                test_indices=test_indices,
                train_source=data.train,
                validation_indices=validation_indices,
            )
            for segment, test_indices, validation_indices in zip(
                segments, tested, held_out, strict=True
            )
        ),
    )


def _check_groups(name: str, groups: Tensor, count: int) -> None:
    if groups.shape != (count,) or groups.is_floating_point():
        raise ValueError(
            f"`{name}` has shape {tuple(groups.shape)} and dtype {groups.dtype}; pass one whole "
            f"number for each of the {count} examples."
        )
