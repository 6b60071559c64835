"""Build a model from a seed without touching the caller's random state."""

from collections.abc import Callable

import torch
from torch import nn


def seeded(build: Callable[[], nn.Module], seed: int) -> nn.Module:
    """Call `build()` with torch's global generator set to `seed`, then put the generator back.

    PyTorch initialises layers from its global generator and offers no other; borrowing it is the
    only way to the usual initialisation that leaves the caller's randomness as it was.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build()
