"""Class streams in which a class comes in more than one segment: blurred, or again and again."""

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

    `disjoint` of the classes stay in their segment. Of each other class, `blur` of the examples
    leave their places; they are shuffled, and fill these places again. So every segment keeps its
    size, and of T segments of one size one in T of the moved examples comes back to its own.

    Over equal groups of classes this is i-Blurry-N-M with N = 100 disjoint and M = 100 blur. Over
    `random_groups`, where chance decides how many classes a segment brings, it is Si-Blurry.

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
    _check_is_of_classes(stream)
    labels = stream.examples.labels[stream.plan.order]
    classes = classes_in(labels)
    drawn = torch.randperm(len(classes), generator=derived_generator(seed, "disjoint classes"))
    leaving = []
    for position in drawn[round(disjoint * len(classes)) :].tolist():
        mine = (labels == classes[position]).nonzero().flatten()
        generator = derived_generator(seed, "blurred examples", classes[position])
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
    segment the order is shuffled.

    Args:
        stream: A class stream with sharp boundaries that has given nothing yet. It stays as it is.
        chance: From 0 to 1.
        seed: Decides where classes come again, and the order.

    Returns:
        A new stream. Its segments, for evaluators, name the classes that come in them first.

    References:
        Hemati et al. 2023, Class-incremental learning with repetition.
    """
    _check_share("chance", chance)
    _check_is_of_classes(stream)
    plan, count = stream.plan, stream.plan.num_segments
    labels = stream.examples.labels[plan.order]
    generator = derived_generator(seed, "repeated classes")
    stretches: list[list[Tensor]] = [[] for _ in range(count)]
    for label in classes_in(labels):
        mine = (labels == label).nonzero().flatten()
        own = int(plan.origin[mine[0]])
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


def _check_is_of_classes(stream: Stream) -> None:
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
