"""Draw which examples a segment gets and in which order they arrive."""

import torch
from torch import Tensor

from recollect.streams.seeds import derived_generator


def draw_examples(
    pool: Tensor,
    num_examples: int | None,
    *,
    seed: int,
    segment_name: str,
    keeps_order: bool = False,
) -> Tensor:
    """Return `num_examples` of the source indices in `pool`, in order of arrival.

    Choice and order are drawn separately, and independently for each segment. So neither the
    number of segments nor their order changes what one segment holds.

    Args:
        pool: Source indices to choose from.
        num_examples: How many, exactly. All of the pool if None.
        seed: Seed of the stream.
        segment_name: What tells this segment from the others.
        keeps_order: They arrive in the order of their indices.

    Raises:
        ValueError: The pool is smaller than asked for.
    """
    if num_examples is None:
        num_examples = len(pool)
    if not 0 < num_examples <= len(pool):
        raise ValueError(
            f"`examples_per_segment` is {num_examples}, but segment `{segment_name}` has "
            f"{len(pool)} examples to choose from; pass a number from 1 to that, or more data."
        )
    choice = torch.randperm(len(pool), generator=derived_generator(seed, "subset", segment_name))
    chosen = pool[choice[:num_examples]].sort().values
    if keeps_order:
        return chosen
    order = torch.randperm(num_examples, generator=derived_generator(seed, "order", segment_name))
    return chosen[order]
