"""Look at a model and leave no trace: its modes, its buffers and torch's generators."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from recollect.learner.buffers import BufferCopies
from recollect.learner.randomness import keeping_generators


@contextmanager
def leaving_no_trace(model: nn.Module, device: torch.device) -> Iterator[None]:
    """Put the model's buffers and torch's generators back afterwards, to the bit."""
    buffers = BufferCopies(model)
    buffers.take()
    with keeping_generators(device):
        try:
            yield
        finally:
            buffers.restore()


@contextmanager
def evaluating_unseen(model: nn.Module, device: torch.device) -> Iterator[None]:
    """Switch to evaluation mode and leave no trace of what happens in it."""
    with leaving_no_trace(model, device), _evaluating(model):
        yield


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Switch every module to evaluation mode, and each back to its own mode afterwards."""
    training = [module for module in model.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True
