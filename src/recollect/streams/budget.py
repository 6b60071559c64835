"""A stream that does not wait: a slow learner sees only some of its batches."""

from dataclasses import replace
from fractions import Fraction

import torch

from recollect.errors import StreamError
from recollect.streams.stream import Stream


def within_budget(stream: Stream, *, cost: float, budget: float = 1.0) -> Stream:
    r"""Leave out the batches that arrive while a learner is busy.

    A step costs `cost`, and `budget` is what is paid out with each batch. The k-th batch, from 0,
    is given when the sum reaches the next whole step:

        floor(k r) > floor((k - 1) r),   r = min(1, budget / cost)

    So the first is given, and of N batches 1 + floor((N - 1) r). Nothing is drawn, and shares are
    exact: a `cost` of 2.1 is 21/10.

    Args:
        stream: A stream that has given nothing yet. It stays as it is.
        cost: Of a step of the method, in steps of ER, such as `recollect cost` measures.
        budget: Steps of ER that there is time for per batch.

    Example:
        >>> from recollect.datasets import Examples
        >>> from recollect.streams import split_classes
        >>> data = Examples(torch.arange(12), torch.zeros(12, dtype=torch.int64))
        >>> stream = split_classes(data, classes_per_segment=1, batch_size=2)
        >>> len(stream), len(within_budget(stream, cost=2.1))
        (6, 3)

    References:
        Ghunaim et al. 2023, Real-time evaluation in online continual learning: there, too, a
        method of relative complexity n learns from one in n batches. They predict every batch, with
        the last model that was finished; here a step takes effect at once.
    """
    for name, value in (("cost", cost), ("budget", budget)):
        if not 0 < value < float("inf"):
            raise ValueError(f"`{name}` is {value}; pass a number above 0.")
    if stream.cursor:
        raise StreamError(
            f"`stream` has given {stream.cursor} examples already; pass it before its first batch, "
            "or pass `stream.fresh()`."
        )
    # As the digits say it: 2.1 is not a fraction of two.
    share = min(Fraction(1), Fraction(str(budget)) / Fraction(str(cost)))
    plan, ends = stream.plan, torch.tensor([0, *stream.plan.batch_ends()])
    is_given = [k * share // 1 > (k - 1) * share // 1 for k in range(len(stream))]
    kept = torch.repeat_interleave(torch.tensor(is_given), torch.diff(ends))
    return Stream(
        stream.examples,
        stream.segments,
        replace(plan, order=plan.order[kept], origin=plan.origin[kept]),
    )
