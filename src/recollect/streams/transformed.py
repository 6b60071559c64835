"""Domain-incremental streams: all classes in every segment, the inputs change."""

from collections.abc import Sequence

import torch
from torch import Tensor

from recollect.datasets import Examples
from recollect.streams.plan import Plan
from recollect.streams.sampling import draw_examples
from recollect.streams.segment import Segment, classes_in
from recollect.streams.stream import Stream
from recollect.streams.transforms import (
    InputTransform,
    PixelPermutation,
    Rotation,
    Unchanged,
    num_pixels,
)


def permuted_pixels(
    examples: Examples,
    *,
    num_segments: int,
    examples_per_segment: int | None = None,
    among: Tensor | None = None,
    seed: int = 0,
    permutation_seed: int | None = None,
    batch_size: int = 10,
) -> Stream:
    """Permute the pixels anew in each segment; the first segment is left as it is.

    Every segment draws its examples from the whole pool, independently of the other segments, so an
    image may return in a later segment under another permutation.

    Args:
        examples: What to stream.
        num_segments: How many segments. Segment k is the same however many follow.
        examples_per_segment: Stream exactly this many in each, a fresh random subset for each
            segment and seed. All of them if None.
        among: Indices of the `examples` that may be streamed; all if None.
        seed: Decides subsets, orders and permutations.
        permutation_seed: Decides the permutations instead of `seed`, to hold them fixed over seeds.
        batch_size: Examples per batch; the last of a segment may be shorter.

    Example:
        >>> data = Examples(torch.arange(12).reshape(4, 3), torch.tensor([0, 1, 0, 1]))
        >>> stream = permuted_pixels(data, num_segments=2, batch_size=4)
        >>> first, second = stream
        >>> first[0].sort(0).values.tolist()
        [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
    """
    if num_segments < 1:
        raise ValueError(f"`num_segments` is {num_segments}; pass at least 1.")
    source = seed if permutation_seed is None else permutation_seed
    transforms: dict[str, InputTransform] = {"unpermuted": Unchanged()}
    for segment_index in range(1, num_segments):
        transforms[f"permutation {segment_index}"] = PixelPermutation.random(
            num_pixels(examples.inputs), seed=source, segment_index=segment_index
        )
    return _transformed(
        examples, transforms, examples_per_segment, among=among, seed=seed, batch_size=batch_size
    )


def rotated(
    examples: Examples,
    *,
    angles: Sequence[float],
    examples_per_segment: int | None = None,
    among: Tensor | None = None,
    seed: int = 0,
    batch_size: int = 10,
) -> Stream:
    """Turn the images by another angle in each segment.

    Args:
        examples: Images to stream.
        angles: Degrees counter-clockwise, one per segment, no two alike.
        examples_per_segment: Stream exactly this many in each, a fresh random subset for each
            segment and seed. All of them if None.
        among: Indices of the `examples` that may be streamed; all if None.
        seed: Decides subsets and orders.
        batch_size: Examples per batch; the last of a segment may be shorter.
    """
    transforms = {f"rotated {angle:g} degrees": Rotation(angle) for angle in angles}
    if len(transforms) != len(angles) or not transforms:
        raise ValueError(
            f"`angles` is {list(angles)}; pass at least one angle, and each only once."
        )
    return _transformed(
        examples, transforms, examples_per_segment, among=among, seed=seed, batch_size=batch_size
    )


def _transformed(
    examples: Examples,
    transforms: dict[str, InputTransform] | dict[str, Rotation],
    examples_per_segment: int | None,
    *,
    among: Tensor | None,
    seed: int,
    batch_size: int,
) -> Stream:
    pool = torch.arange(len(examples)) if among is None else among
    classes = tuple(classes_in(examples.labels[pool]))
    segments = [Segment(name, classes, transform) for name, transform in transforms.items()]
    orders = [
        draw_examples(pool, examples_per_segment, seed=seed, segment_name=segment.name)
        for segment in segments
    ]
    return Stream(examples, segments, Plan.by_segment(orders, batch_size=batch_size))
