"""Streams in which some classes are rarer than others."""

from collections.abc import Mapping
from dataclasses import replace

import torch

from recollect.errors import StreamError
from recollect.streams.seeds import derived_generator
from recollect.streams.segment import classes_in
from recollect.streams.stream import Stream


def imbalanced(
    stream: Stream,
    *,
    ratios: Mapping[int, float] | None = None,
    factor: float | None = None,
    seed: int = 0,
) -> Stream:
    """Keep only a share of each class's examples, in the order they had.

    A class with n examples and share r keeps exactly max(1, round(r n)), drawn uniformly.

    Args:
        stream: A stream that has given nothing yet: split, permuted or blurred. It stays as it is.
        ratios: Share to keep of each class, above 0 and up to 1. Classes not named keep all.
        factor: Instead of `ratios`: the lowest class keeps all and each next one, in ascending
            order, keeps `factor` times the share of the one before.
        seed: Decides which examples are kept.

    Example:
        >>> from recollect.datasets import Examples
        >>> from recollect.streams import split_classes
        >>> data = Examples(torch.arange(16), torch.tensor([0, 1] * 8))
        >>> stream = split_classes(data, classes_per_segment=1)
        >>> rarer = imbalanced(stream, factor=0.25)
        >>> torch.cat([labels for inputs, labels in rarer]).bincount().tolist()
        [8, 2]
    """
    if stream.cursor:
        raise StreamError(
            f"`stream` has given {stream.cursor} examples already; pass it before its first batch, "
            "or pass `stream.fresh()`."
        )
    labels = stream.examples.labels[stream.plan.order]
    shares = _shares(classes_in(labels), ratios, factor)
    is_kept = torch.ones(len(labels), dtype=torch.bool)
    for label, share in shares.items():
        positions = (labels == label).nonzero().flatten()
        num_kept = max(1, round(share * len(positions)))
        generator = derived_generator(seed, "imbalance", label)
        is_kept[positions[torch.randperm(len(positions), generator=generator)[num_kept:]]] = False
    plan = replace(
        stream.plan, order=stream.plan.order[is_kept], origin=stream.plan.origin[is_kept]
    )
    return Stream(stream.examples, stream.segments, plan)


def long_tailed(stream: Stream, *, rarest: float, seed: int = 0) -> Stream:
    r"""Let a few classes have most of the examples.

    Of C classes in an order that is drawn, the k-th, from 0, keeps $rarest^{k / (C - 1)}$ of its
    examples: the first all, the last `rarest` of them.

    Args:
        stream: As for `imbalanced`.
        rarest: Share that the rarest class keeps, above 0 and up to 1. An imbalance factor of 100
            is 0.01.
        seed: Decides which classes are rare, and which examples are kept.

    References:
        Cao et al. 2019 (LDAM), the exponential kind.
    """
    if not 0 < rarest <= 1:
        raise ValueError(f"`rarest` is {rarest}; pass a share above 0, up to 1.")
    classes = classes_in(stream.examples.labels[stream.plan.order])
    drawn = torch.randperm(len(classes), generator=derived_generator(seed, "long tail")).tolist()
    last = max(1, len(classes) - 1)
    ratios = {classes[position]: rarest ** (k / last) for k, position in enumerate(drawn)}
    return imbalanced(stream, ratios=ratios, seed=seed)


def _shares(
    classes: list[int], ratios: Mapping[int, float] | None, factor: float | None
) -> dict[int, float]:
    if (ratios is None) == (factor is None):
        raise ValueError(f"`ratios` is {ratios} and `factor` is {factor}; pass one of the two.")
    if factor is not None:
        if not 0 < factor <= 1:
            raise ValueError(f"`factor` is {factor}; pass a number above 0 and up to 1.")
        return {label: factor**rank for rank, label in enumerate(classes)}
    shares = dict(ratios or {})
    for label, share in shares.items():
        if label not in classes:
            raise ValueError(f"`ratios` names class {label}; the stream has classes {classes}.")
        if not 0 < share <= 1:
            raise ValueError(
                f"`ratios` gives class {label} the share {share}; pass a number above 0, up to 1."
            )
    return shares
