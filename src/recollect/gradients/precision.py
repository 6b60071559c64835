"""Layers that compute in a lower precision than their weights have, as under autocast."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def running_autocast(device: torch.device) -> torch.dtype | None:
    """Return the precision of the autocast that is on here, None if none is."""
    # Not every device can be asked: of some, torch knows no autocast.
    if not torch.amp.is_autocast_available(device.type):
        return None
    if not torch.is_autocast_enabled(device.type):
        return None
    return torch.get_autocast_dtype(device.type)


def autocast_again(dtype: torch.dtype | None, device: torch.device) -> AbstractContextManager[None]:
    """Run as under an autocast that was on elsewhere.

    Without its cache of cast weights: weights move between passes, and the cache would not notice
    as long as the caller stays in one `with torch.autocast` block.
    """
    if dtype is None:
        return nullcontext()
    return torch.autocast(device.type, dtype=dtype, cache_enabled=False)


def as_precise_as(
    dtype: torch.dtype, activations: Tensor, cotangents: Tensor
) -> tuple[Tensor, Tensor]:
    """Return what a layer was given and the gradient at its output in the precision of its weights.

    What it was given is first rounded as the layer itself has rounded it.
    """
    if activations.is_floating_point():
        activations = activations.to(cotangents.dtype).to(dtype)
    return activations, cotangents.to(dtype)


def at_least(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the tensor in `dtype` if that is finer than its own."""
    if tensor.dtype == dtype or torch.finfo(tensor.dtype).eps <= torch.finfo(dtype).eps:
        return tensor
    return tensor.to(dtype)


def coarsest(tensors: Iterable[Tensor]) -> float:
    """Return `eps` of the least precise of them."""
    return max((torch.finfo(tensor.dtype).eps for tensor in tensors), default=0.0)
