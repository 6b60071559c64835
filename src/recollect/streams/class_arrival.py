"""Class streams in which a class comes in more than one segment: blurred, or again and again."""

from collections import Counter
from dataclasses import replace

import torch
from torch import Tensor

from recollect.errors import StreamError
from recollect.streams.plan import Plan
from recollect.streams.seeds import derived_generator
from recollect.streams.segment import classes_in
from recollect.streams.stream import Stream
from recollect.streams.transforms import Unchanged


def blurred_classes(
    stream: Stream, *, disjoint: float = 0.5, blur: float = 0.1, seed: int = 0
) -> Stream:
    """Let a share of the classes come, in part, in every segment (i-Blurry, Si-Blurry).

    `disjoint` of the classes stay in their segment, the same share in each as far as whole classes
    allow. Of each other class, `blur` of the examples leave their places; they are shuffled, and
    fill these places again. So every segment keeps its size, and of T segments of one size one in T
    of the moved examples comes back to its own.

    Over equal groups of classes this is i-Blurry-N-M with N = 100 disjoint and M = 100 blur, as its
    code draws it; the paper says that moved examples go to other tasks. Over `random_groups`, where
    chance decides how many classes a segment brings, it is Si-Blurry. In its code chance also
    decides how many examples each segment exchanges; here that is `blur` of each class.

    Args:
        stream: A class stream with sharp boundaries that has given nothing yet. It stays as it is.
        disjoint: Share of the classes, from 0 to 1. Which ones is drawn.
        blur: Share of each other class's examples, from 0 to 1.
        seed: Decides which classes and examples, and where these go.

    Returns:
        A new stream. Its segments, for evaluators, still name the classes that are theirs.

    References:
        Koh et al. 2022, Online continual learning on class incremental blurry task configuration
        with anytime inference. Moon et al. 2023, Online class incremental learning on stochastic
        blurry task boundary.

    Example:
        >>> from recollect.datasets import Examples
        >>> from recollect.streams import split_classes
        >>> data = Examples(torch.arange(40), torch.tensor([0, 1, 2, 3] * 10))
        >>> stream = split_classes(data, classes_per_segment=2, batch_size=20)
        >>> first, second = blurred_classes(stream, disjoint=0.5, blur=0.5, seed=1)
        >>> [sorted(set(labels.tolist())) for inputs, labels in (first, second)]
        [[0, 1, 3], [1, 2, 3]]
    """
    _check_share("disjoint", disjoint)
    _check_share("blur", blur)
    segment_of = _segments_of_classes(stream)
    labels = stream.examples.labels[stream.plan.order]
    drawn = _alternating(segment_of, derived_generator(seed, "disjoint classes"))
    leaving = []
    for label in drawn[round(disjoint * len(drawn)) :]:
        mine = (labels == label).nonzero().flatten()
        generator = derived_generator(seed, "blurred examples", label)
        chosen = torch.randperm(len(mine), generator=generator)[: round(blur * len(mine))]
        leaving.append(mine[chosen])
    if not leaving:
        return stream.fresh()
    places = torch.cat(leaving).sort().values
    arrival = torch.arange(len(labels))
    shuffle = torch.randperm(len(places), generator=derived_generator(seed, "blurred places"))
    arrival[places] = places[shuffle]
    plan = replace(stream.plan, order=stream.plan.order[arrival])
    return Stream(stream.examples, stream.segments, plan)


def repeated_classes(stream: Stream, *, chance: float, seed: int = 0) -> Stream:
    """Let every class come again in later segments, each time with new examples.

    In each segment after its own a class comes again with probability `chance`. Its examples are
    dealt out evenly over its segments, in their order, so every example still comes once. Within a
    segment the order is shuffled. So later segments grow and early ones shrink.

    Args:
        stream: A class stream with sharp boundaries that has given nothing yet. It stays as it is.
        chance: From 0 to 1.
        seed: Decides where classes come again, and the order.

    Returns:
        A new stream. Its segments, for evaluators, name the classes that come in them first.

    References:
        Hemati et al. 2023, Class-incremental learning with repetition. Its slot-based generator,
        too, deals the examples of a class out without giving one twice, over as many segments for
        every class; its sampling-based one draws where a class comes again, as here, and may give
        an example twice.

    Example:
        >>> from recollect.datasets import Examples
        >>> from recollect.streams import split_classes
        >>> data = Examples(torch.arange(12), torch.tensor([0, 1, 2] * 4))
        >>> stream = split_classes(data, classes_per_segment=1)
        >>> again = repeated_classes(stream, chance=1.0)
        >>> [labels.bincount().tolist() for inputs, labels in again]
        [[2], [1, 2], [1, 2, 4]]
    """
    _check_share("chance", chance)
    segment_of = _segments_of_classes(stream)
    plan, count = stream.plan, stream.plan.num_segments
    labels = stream.examples.labels[plan.order]
    generator = derived_generator(seed, "repeated classes")
    stretches: list[list[Tensor]] = [[] for _ in range(count)]
    for label, own in segment_of.items():
        mine = (labels == label).nonzero().flatten()
        again = torch.rand(count, generator=generator) < chance
        segments = [k for k in range(own, count) if k == own or again[k]][: len(mine)]
        for segment, dealt in zip(segments, torch.tensor_split(mine, len(segments)), strict=True):
            stretches[segment].append(plan.order[dealt])
    orders = []
    for segment, parts in enumerate(stretches):
        indices = torch.cat(parts)
        order = derived_generator(seed, "order with repeated classes", segment)
        orders.append(indices[torch.randperm(len(indices), generator=order)])
    again_by_segment = Plan.by_segment(orders, batch_size=plan.batch_size)
    return Stream(stream.examples, stream.segments, again_by_segment)


def _check_share(name: str, share: float) -> None:
    if not 0 <= share <= 1:
        raise ValueError(f"`{name}` is {share}; pass a share from 0 to 1.")


def _alternating(segment_of: dict[int, int], generator: torch.Generator) -> list[int]:
    """Shuffle classes so that every beginning has the same share of each segment's classes."""
    order = torch.randperm(len(segment_of), generator=generator).tolist()
    shuffled = [[*segment_of][position] for position in order]
    num_in = Counter(segment_of.values())
    met: Counter[int] = Counter()
    place = {}
    for label in shuffled:
        met[segment_of[label]] += 1
        place[label] = (met[segment_of[label]] - 0.5) / num_in[segment_of[label]]
    return sorted(shuffled, key=place.__getitem__)


def _segments_of_classes(stream: Stream) -> dict[int, int]:
    """Return the number of each class's segment, classes ascending."""
    if stream.cursor:
        raise StreamError(
            f"`stream` has given {stream.cursor} examples already; pass it before its first batch, "
            "or pass `stream.fresh()`."
        )
    changed = [s.name for s in stream.segments if not isinstance(s.transform, Unchanged)]
    if changed:
        raise ValueError(
            f"segment `{changed[0]}` changes its inputs, so its examples cannot come in another; "
            "pass a stream of classes, such as `split_classes` makes."
        )
    if stream.plan.batching != "by segment":
        raise ValueError(
            "`stream` is blurred already; pass a stream of classes with sharp boundaries."
        )
    labels = stream.examples.labels[stream.plan.order]
    segment_of: dict[int, int] = {}
    for label in classes_in(labels):
        found = sorted(set(stream.plan.origin[labels == label].tolist()))
        if len(found) > 1:
            names = " and ".join(f"`{stream.segments[k].name}`" for k in found[:2])
            raise ValueError(
                f"class {label} comes in segments {names} already; pass a stream in which each "
                "class has one segment, such as `split_classes` makes."
            )
        segment_of[label] = found[0]
    return segment_of
