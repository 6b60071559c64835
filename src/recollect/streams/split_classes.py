"""Class-incremental streams: each segment brings classes of its own."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor

from recollect.datasets import Examples
from recollect.streams.plan import Plan
from recollect.streams.sampling import draw_examples
from recollect.streams.seeds import derived_generator
from recollect.streams.segment import Segment, classes_in
from recollect.streams.stream import Stream

ClassOrder = Literal["ascending", "shuffled"] | Sequence[int]


def split_classes(
    examples: Examples,
    *,
    classes_per_segment: int | None = None,
    groups: Sequence[Sequence[int]] | None = None,
    examples_per_segment: int | Sequence[int] | None = None,
    class_order: ClassOrder = "ascending",
    among: Tensor | None = None,
    seed: int = 0,
    batch_size: int = 10,
) -> Stream:
    """Give the classes in groups, one segment after the other.

    Args:
        examples: What to stream.
        classes_per_segment: Cut the classes, in `class_order`, into groups of this size.
        groups: The classes of each segment, instead of `classes_per_segment`.
        examples_per_segment: Stream exactly this many of each group, a fresh random subset for each
            seed; several numbers are one per group. All of them if None.
        class_order: `"ascending"`, `"shuffled"` by the seed, or the classes in the order wanted.
        among: Indices of the `examples` that may be streamed; all if None.
        seed: Decides subsets and orders. The same for every method that is compared.
        batch_size: Examples per batch; the last of a segment may be shorter.

    Returns:
        A stream whose segments are named after their classes.

    Example:
        >>> data = Examples(torch.arange(8), torch.tensor([0, 1, 2, 3, 0, 1, 2, 3]))
        >>> stream = split_classes(data, classes_per_segment=2, batch_size=4)
        >>> [sorted(labels.tolist()) for inputs, labels in stream]
        [[0, 0, 1, 1], [2, 2, 3, 3]]
    """
    pool = torch.arange(len(examples)) if among is None else among
    pool_labels = examples.labels[pool]
    if groups is None:
        groups = class_groups(
            pool_labels, classes_per_segment=classes_per_segment, class_order=class_order, seed=seed
        )
    elif classes_per_segment is not None:
        raise ValueError(
            f"`classes_per_segment` is {classes_per_segment} and `groups` is given too; pass one."
        )
    segments = [class_segment(group) for group in groups]
    _check_classes(segments, set(classes_in(pool_labels)))
    sizes: Sequence[int | None]
    if examples_per_segment is None or isinstance(examples_per_segment, int):
        sizes = [examples_per_segment] * len(segments)
    else:
        sizes = examples_per_segment
    if len(sizes) != len(segments):
        raise ValueError(
            f"`examples_per_segment` has {len(sizes)} entries for {len(segments)} groups; pass one "
            "number for all, or one per group."
        )
    orders = [
        draw_examples(
            pool[torch.isin(pool_labels, torch.tensor(segment.classes))],
            size,
            seed=seed,
            segment_name=segment.name,
        )
        for segment, size in zip(segments, sizes, strict=True)
    ]
    return Stream(examples, segments, Plan.by_segment(orders, batch_size=batch_size))


def class_segment(classes: Sequence[int]) -> Segment:
    """Name a segment after the classes it brings.

    Example:
        >>> class_segment([4, 2]).name
        'classes 2, 4'
    """
    ascending = tuple(sorted(classes))
    return Segment("classes " + ", ".join(map(str, ascending)), ascending)


def class_groups(
    labels: Tensor, *, classes_per_segment: int | None, class_order: ClassOrder, seed: int
) -> list[tuple[int, ...]]:
    """Cut the classes that occur in `labels` into groups of equal size.

    Example:
        >>> labels = torch.tensor([5, 3, 3, 9, 1])
        >>> class_groups(labels, classes_per_segment=2, class_order="ascending", seed=0)
        [(1, 3), (5, 9)]
    """
    classes = classes_in(labels)
    if class_order == "shuffled":
        shuffle = torch.randperm(len(classes), generator=derived_generator(seed, "class order"))
        ordered = [classes[position] for position in shuffle.tolist()]
    elif class_order == "ascending":
        ordered = classes
    elif isinstance(class_order, str):
        raise ValueError(
            f"`class_order` is {class_order!r}; pass 'ascending', 'shuffled' or the classes."
        )
    else:
        ordered = list(class_order)
        if sorted(ordered) != classes:
            raise ValueError(
                f"`class_order` is {ordered}, but the classes are {classes}; name each once."
            )
    size = classes_per_segment or 0
    if size < 1 or len(ordered) % size:
        raise ValueError(
            f"`classes_per_segment` is {classes_per_segment}, which does not divide the "
            f"{len(ordered)} classes; pass a divisor, or the `groups` themselves."
        )
    return [tuple(ordered[start : start + size]) for start in range(0, len(ordered), size)]


def random_groups(labels: Tensor, *, num_groups: int, seed: int) -> list[tuple[int, ...]]:
    """Cut the classes that occur in `labels` into groups of random classes and random sizes.

    Every group has at least one class; each way to cut the shuffled classes is equally likely.

    Example:
        >>> random_groups(torch.arange(6), num_groups=3, seed=0)
        [(1, 2, 4), (3,), (0, 5)]

    References:
        Moon et al. 2023 (Si-Blurry), where chance decides how many classes a task has. Their code
        cuts the disjoint classes so and may leave a task none; the blurred ones it cuts evenly.
    """
    classes = classes_in(labels)
    if not 1 <= num_groups <= len(classes):
        raise ValueError(
            f"`num_groups` is {num_groups}, but there are {len(classes)} classes; pass a number "
            "from 1 to that."
        )
    generator = derived_generator(seed, "random groups", num_groups)
    ordered = [classes[k] for k in torch.randperm(len(classes), generator=generator).tolist()]
    cuts = torch.randperm(len(classes) - 1, generator=generator)[: num_groups - 1] + 1
    ends = [0, *sorted(cuts.tolist()), len(classes)]
    return [tuple(sorted(ordered[start:stop])) for start, stop in pairwise(ends)]


def _check_classes(segments: Sequence[Segment], present: set[int]) -> None:
    named = [label for segment in segments for label in segment.classes]
    twice = sorted({label for label in named if named.count(label) > 1})
    if twice:
        raise ValueError(
            f"`groups` names classes {twice} more than once; give each class to one segment."
        )
    absent = sorted(set(named) - present)
    if absent:
        raise ValueError(
            f"`groups` names classes {absent}, which have no examples; the data has classes "
            f"{sorted(present)}."
        )
