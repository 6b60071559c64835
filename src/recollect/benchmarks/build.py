"""Build a benchmark from its name, or from a user's own data."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from recollect import datasets
from recollect.benchmarks.benchmark import Benchmark
from recollect.benchmarks.cut import cut_segments, cut_stream
from recollect.benchmarks.protocols import Recipe, recipe_for, usual_protocol
from recollect.benchmarks.scaling import SCALINGS
from recollect.benchmarks.usual import usual_defaults, usual_model, usual_scaling
from recollect.datasets import LabelledData
from recollect.streams import Stream


def benchmark(  # noqa: PLR0913 - each is one free choice, and all but the name have defaults
    name: str,
    *,
    seed: int = 0,
    protocol: str | None = None,
    data: str | LabelledData | None = None,
    root: str | Path | None = None,
    batch_size: int | None = None,
    num_segments: int | None = None,
    examples_per_segment: int | None = None,
    validation_per_segment: int | None = None,
    has_random_groups: bool = False,
) -> Benchmark:
    """Build one of the paper's four benchmarks, or the one of text.

    Args:
        name: `mnist-split`, `mnist-permuted`, `cifar10-split`, `mini-imagenet-split` or
            `languages-split`.
        seed: Decides subsets, orders, permutations, held-out examples and the model. The same seed
            gives every method the same stream.
        protocol: Whose version: `paper` if nothing is said, `mir-official` or `raptormai`.
            docs/benchmarks.md lists the differences, the network among them. Text is not in the
            paper: its only version is our `own`.
        data: Another data set to make the benchmark of: a name for `datasets.load` such as
            `"mnist"` (the default for MNIST is the part embedded in this package), or your own.
        root: Directory to look for the data in.
        batch_size: Examples per batch instead of the protocol's.
        num_segments: Only this many segments, the first ones, just as they are in the whole stream.
            The head of the model keeps an output for every class of the data.
        examples_per_segment: Exactly this many in each segment instead of the protocol's.
        validation_per_segment: Hold out this many for each segment instead of the protocol's. A
            permuted benchmark holds them out once, for all segments.
        has_random_groups: Let the seed decide which classes a segment brings, and how many.

    Returns:
        A benchmark with its stream at the beginning.

    Raises:
        ValueError: The name or the protocol is unknown, or the data has too few examples.
        DataError: The data set is not there; the message says how to get it.
    """
    protocol = usual_protocol(name) if protocol is None else protocol
    recipe = recipe_for(name, protocol)
    defaults = recipe.defaults
    if batch_size is not None:
        defaults = replace(defaults, batch_size=batch_size)
    if examples_per_segment is not None:
        recipe = replace(
            recipe, examples_per_segment=examples_per_segment, gives_one_batch_more=False
        )
    if validation_per_segment is not None:
        recipe = replace(recipe, validation=validation_per_segment)
    recipe = replace(
        recipe,
        defaults=defaults,
        num_segments=num_segments,
        has_random_groups=has_random_groups,
    )
    source = (
        data if isinstance(data, LabelledData) else datasets.load(data or recipe.dataset, root=root)
    )
    stream, held_out = cut_stream(source, recipe, seed=seed)
    return Benchmark(
        name=name,
        protocol=protocol,
        seed=seed,
        stream=stream,
        segments=cut_segments(source, stream, held_out),
        transform=SCALINGS[recipe.scaling],
        num_classes=len(source.class_names),
        defaults=defaults,
        build_model=usual_model(source, recipe),
    )


def benchmark_from(
    data: LabelledData,
    *,
    classes_per_segment: int,
    examples_per_segment: int | None = None,
    validation_per_segment: int = 0,
    seed: int = 0,
    batch_size: int = 10,
    transform: Callable[[Tensor], Tensor] | None = None,
    model: Callable[[], nn.Module] | None = None,
) -> Benchmark:
    """Build a class-incremental benchmark of your own data.

    Args:
        data: What `recollect.datasets` loaded or you put together.
        classes_per_segment: How many new classes each segment brings, in ascending order.
        examples_per_segment: Exactly this many in each; all that are not held out if None.
        validation_per_segment: Hold out this many for each segment.
        seed: Decides subsets, orders, held-out examples and the model.
        batch_size: Examples per batch.
        transform: Stored inputs to model inputs. If None, bytes of colour images are scaled to
            [-1, 1], other bytes to [0, 1] and flattened, floats left as they are.
        model: Builds the model. If None, colour images of 25 pixels or more get the reduced
            ResNet18, everything else an MLP.

    Example:
        >>> from recollect.datasets import Examples
        >>> part = Examples(torch.zeros(8, 5), torch.arange(8) % 4)
        >>> mine = benchmark_from(
        ...     LabelledData("mine", train=part, test=part, class_names=("a", "b", "c", "d")),
        ...     classes_per_segment=2,
        ... )
        >>> [len(segment.test) for segment in mine.segments]
        [4, 4]
    """
    recipe = Recipe(
        data.name,
        "unit",  # not used: the transform is handed on below
        usual_defaults(data, batch_size),
        classes_per_segment=classes_per_segment,
        examples_per_segment=examples_per_segment,
        validation=validation_per_segment,
    )
    stream, held_out = cut_stream(data, recipe, seed=seed)
    own = benchmark_from_stream(data, stream, seed=seed, transform=transform, model=model)
    return replace(own, segments=cut_segments(data, stream, held_out))


def benchmark_from_stream(
    data: LabelledData,
    stream: Stream,
    *,
    seed: int = 0,
    transform: Callable[[Tensor], Tensor] | None = None,
    model: Callable[[], nn.Module] | None = None,
) -> Benchmark:
    """Build a benchmark around a stream of your own over `data.train`, such as a rotated one.

    Each segment is tested on the test examples of its classes with its transform applied. Nothing
    is held out for validation.

    Args:
        data: Where the stream's examples and the test sets are from.
        stream: Any stream over `data.train`.
        seed: Seeds the model.
        transform: As in `benchmark_from`.
        model: As in `benchmark_from`.
    """
    if stream.examples is not data.train:
        raise ValueError(
            "`stream` is not over `data.train`, so its test sets are unknown; "
            "build it with `data.train` as its examples."
        )
    nothing = torch.zeros(0, dtype=torch.int64)
    return Benchmark(
        name=data.name,
        protocol="own",
        seed=seed,
        stream=stream,
        segments=cut_segments(data, stream, [nothing] * len(stream.segments)),
        transform=transform or usual_scaling(data),
        num_classes=len(data.class_names),
        defaults=usual_defaults(data, stream.batch_size),
        build_model=model or usual_model(data),
    )
