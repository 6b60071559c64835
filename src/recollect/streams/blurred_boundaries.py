"""Streams whose segments flow into each other, from sharp to fully mixed."""

from dataclasses import replace
from typing import Literal

import torch

from recollect.errors import StreamError
from recollect.streams.plan import Plan
from recollect.streams.seeds import derived_generator
from recollect.streams.stream import Stream


def blurred_boundaries(stream: Stream, *, width: int | Literal["iid"], seed: int = 0) -> Stream:
    r"""Mix neighbouring segments over `width` examples around each boundary.

    The j-th example after a boundary (j = 0, 1, ..., width/2 - 1) and the j-th before it trade
    places with probability $1/2 - (j + 1/2) / width$, independently for each pair. So

        P(example at position p of the window is of the later segment) = (p + 1/2) / width,

    for p = 0 .. width - 1: a straight line from 0 to 1. Outside the windows nothing moves. Every
    example still arrives exactly once. Batches are cut straight through, whatever the width.

    Args:
        stream: A stream that has given nothing yet. It stays as it is.
        width: Examples in the window around each boundary, half on either side: an even number
            up to the size of the smallest segment. 0 leaves the boundaries sharp; `"iid"` shuffles
            the whole stream uniformly.
        seed: Decides which pairs trade places.

    Returns:
        A new stream. Its `boundaries` are unchanged, for evaluators.

    Raises:
        StreamError: The stream has given batches already.
        ValueError: The width is odd, negative, or so large that windows would overlap.
    """
    if stream.cursor:
        raise StreamError(
            f"`stream` has given {stream.cursor} examples already; pass it before its first batch, "
            "or pass `stream.fresh()`."
        )
    num_examples = stream.num_examples
    generator = derived_generator(seed, "blur", width)
    if width == "iid":
        arrival = torch.randperm(num_examples, generator=generator)
    else:
        _check_width(width, stream.plan)
        arrival = _traded(stream.plan, width, generator)
    plan = replace(
        stream.plan,
        order=stream.plan.order[arrival],
        origin=stream.plan.origin[arrival],
        batching="straight through",
    )
    return Stream(stream.examples, stream.segments, plan)


def _check_width(width: int, plan: Plan) -> None:
    if plan.batching != "by segment":
        raise ValueError(
            f"`width` is {width}, but the stream is blurred already; blur a stream with sharp "
            "boundaries."
        )
    smallest = min(plan.segment_sizes)
    if width < 0 or width % 2 or width > smallest:
        raise ValueError(
            f"`width` is {width}; pass an even number from 0 to {smallest}, the size of the "
            "smallest segment, or 'iid'."
        )


def _traded(plan: Plan, width: int, generator: torch.Generator) -> torch.Tensor:
    arrival = torch.arange(len(plan.order))
    distance = torch.arange(width // 2)
    chance = 0.5 - (distance + 0.5) / max(width, 1)
    boundary = 0
    for size in plan.segment_sizes[:-1]:
        boundary += size
        trades = torch.rand(len(distance), generator=generator) < chance
        before = boundary - 1 - distance[trades]
        after = boundary + distance[trades]
        arrival[before], arrival[after] = after, before
    return arrival
