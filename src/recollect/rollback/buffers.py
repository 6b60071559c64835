"""Put a model's buffers back, also those it replaces instead of filling."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn


class BufferCopies:
    """Which tensor stands under each buffer's name of some modules, and what it holds."""

    def __init__(self, modules: Iterable[nn.Module]) -> None:
        self._owners = [module for module in modules if module._buffers]
        self._kept: list[tuple[nn.Module, dict[str, Tensor | None], list[Tensor]]] = []

    def take(self) -> None:
        """Remember every buffer as it is."""
        if self._owners:
            self._take()

    @torch.no_grad()
    def _take(self) -> None:
        kept = []
        for owner in self._owners:
            live = dict(owner._buffers)
            copies = [tensor.clone() for tensor in live.values() if tensor is not None]
            kept.append((owner, live, copies))
        self._kept = kept

    @torch.no_grad()
    def restore(self) -> None:
        """Put every buffer back: the same tensor, with the same values."""
        for owner, live, copies in self._kept:
            owner._buffers.clear()
            owner._buffers.update(live)
            tensors = [tensor for tensor in live.values() if tensor is not None]
            for tensor, copy in zip(tensors, copies, strict=True):
                tensor.copy_(copy)
