"""Losses that depend on each other, taken apart by whose outputs they reach the weights through."""

import torch
from jaxtyping import Float
from torch import Tensor

from recollect import nested
from recollect.errors import UnsupportedModuleError
from recollect.network.batch import Batch


def contributions(
    losses: Float[Tensor, " examples"], outputs: object, batch: Batch, views: int
) -> Float[Tensor, " examples"] | None:
    """Return losses of the same values whose gradients are contributions of single examples.

    Example i's contribution to the gradient of mean(incoming losses) + mean(replayed losses) is
    what flows back through its own outputs. Its loss here has that gradient times the number of
    examples of its origin, so that means of losses have the gradient they had.

    Args:
        losses: One per example, each of which may depend on every output.
        outputs: What the model answered.
        batch: The examples.
        views: How many outputs each of them has.

    Returns:
        The losses; None if outputs are no tensors with a row per example, so that nothing is an
        example's own.
    """
    if not losses.requires_grad:
        return losses
    count = views * len(batch)
    try:
        leaves = [leaf for leaf in nested.leaves(outputs) if leaf.requires_grad]
    except TypeError:
        return None
    if not leaves or any(leaf.shape[:1] != (count,) for leaf in leaves):
        return None
    replayed = sum(batch.origins)
    sizes = torch.tensor(
        [replayed if flag else len(batch) - replayed for flag in batch.origins],
        dtype=losses.dtype,
        device=losses.device,
    )
    found = torch.autograd.grad((losses / sizes).sum(), leaves, allow_unused=True)
    shares = [
        (leaf * cotangent).flatten(1).sum(1).reshape(views, -1).sum(0)
        for leaf, cotangent in zip(leaves, found, strict=True)
        if cotangent is not None
    ]
    total = sum(shares, losses.new_zeros(len(batch))) * sizes
    return losses.detach() + (total - total.detach())


def undefined(who: str) -> UnsupportedModuleError:
    """Return the error of a rule that weighs gradients which no example has of its own."""
    return UnsupportedModuleError(
        f"{who} couples examples, and the model does not return tensors with one row per example, "
        "so no gradient is an example's own; return such tensors, or use a rule that needs no "
        "per-example gradients, such as GradientSum or WeightedSum."
    )
