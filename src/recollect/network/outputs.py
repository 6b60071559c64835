"""What a model returns: logits, or anything else that the loss takes."""

from functools import reduce

from torch import Tensor

from recollect import nested


def by_example(outputs: object, count: int) -> object | None:
    """Cut outputs off the graph; None if they are not tensors, with one row per example.

    The loss takes outputs of any kind; only reports and margins ask for those of some examples.
    """
    try:
        leaves = nested.leaves(outputs)
    except TypeError:
        return None
    if any(leaf.shape[:1] != (count,) for leaf in leaves):
        return None
    return nested.map_leaves(Tensor.detach, outputs)


def put_together(parts: list[object], sizes: list[int]) -> object:
    """Put the outputs of several passes together."""
    for part, size in zip(parts, sizes, strict=True):
        if by_example(part, size) is None:
            raise TypeError(
                f"the model returned a {type(part).__name__} that is not made of tensors with one "
                "row per example, so several passes cannot be put together; pass "
                "`batch_size=None`."
            )
    return reduce(nested.concat, parts)
