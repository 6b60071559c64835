"""Look at a model and leave no trace: its modes, its buffers and torch's generators."""

from types import TracebackType

import torch
from torch import nn

from recollect.rollback.buffers import BufferCopies
from recollect.rollback.generators import KeepingGenerators


class LeavingNoTrace:
    """Put the model's buffers and torch's generators back behind a block, to the bit."""

    def __init__(self, model: nn.Module, device: torch.device) -> None:
        self._buffers, self._generators = BufferCopies(model), KeepingGenerators(device)

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

    def __init__(self, model: nn.Module, device: torch.device) -> None:
        self._model, self._unseen = model, LeavingNoTrace(model, device)

    def __enter__(self) -> None:
        self._unseen.__enter__()
        self._training = [module for module in self._model.modules() if module.training]
        for module in self._training:
            module.training = False

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for module in self._training:
            module.training = True
        self._unseen.__exit__(kind, error, trace)
