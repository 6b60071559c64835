"""Look at a model and leave no trace: its modes, its buffers and torch's generators."""

from collections.abc import Sequence
from types import TracebackType

import torch
from torch import nn

from recollect.rollback.buffers import BufferCopies
from recollect.rollback.generators import KeepingGenerators


class LeavingNoTrace:
    """Put buffers of a model's modules and torch's generators back behind a block, to the bit."""

    def __init__(self, modules: Sequence[nn.Module], device: torch.device) -> None:
        self._buffers, self._generators = BufferCopies(modules), KeepingGenerators(device)

    def __enter__(self) -> None:
        self._buffers.take()
        self._generators.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._generators.__exit__(kind, error, trace)
        self._buffers.restore()


class EvaluatingUnseen:
    """Switch to evaluation mode in a block and leave no trace of what happens in it."""

    def __init__(self, modules: Sequence[nn.Module], device: torch.device) -> None:
        self._modules, self._unseen = modules, LeavingNoTrace(modules, device)

    def __enter__(self) -> None:
        self._unseen.__enter__()
        self._training = [module for module in self._modules if module.training]
        _set_modes(self._training, training=False)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _set_modes(self._training, training=True)
        self._unseen.__exit__(kind, error, trace)


def _set_modes(modules: Sequence[nn.Module], *, training: bool) -> None:
    """Set the mode of each module, without asking whether it is a parameter: it has one already."""
    for module in modules:
        own = vars(module)
        if "training" in own and type(module).__setattr__ is nn.Module.__setattr__:
            own["training"] = training
        else:
            module.training = training
