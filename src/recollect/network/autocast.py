"""The caller's autocast: passes run under it, all else in full precision."""

from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Final

import torch

from recollect.gradients.precision import autocast_again, running_autocast

_UNCHANGED: Final = nullcontext()


class Autocast:
    """Remembers the autocast that a step was called under, while the step is out of it.

    Attributes:
        dtype: What passes are cast to, None outside a step or without autocast.
    """

    def __init__(self) -> None:
        self.dtype: torch.dtype | None = None
        self._device = torch.device("cpu")

    def left(self, device: torch.device) -> AbstractContextManager[None]:
        """Leave the caller's autocast in a block, if there is one and it was not left before."""
        dtype = running_autocast(device)
        if dtype is None or self.dtype is not None:
            return _UNCHANGED
        return _Left(self, dtype, device)

    def again(self) -> AbstractContextManager[None]:
        """Enter it again, for a pass."""
        return _UNCHANGED if self.dtype is None else autocast_again(self.dtype, self._device)

    def forget(self) -> None:
        """Forget what an interrupted step left."""
        self.dtype = None


class _Left:
    def __init__(self, autocast: Autocast, dtype: torch.dtype, device: torch.device) -> None:
        self._autocast, self._dtype, self._device = autocast, dtype, device
        self._off = torch.autocast(device.type, enabled=False)

    def __enter__(self) -> None:
        self._autocast.dtype, self._autocast._device = self._dtype, self._device
        self._off.__enter__()  # type: ignore[no-untyped-call]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._off.__exit__(kind, error, trace)
        self._autocast.dtype = None
