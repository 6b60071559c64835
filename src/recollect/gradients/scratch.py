"""Scratch for temporaries that is used again and again."""

from collections.abc import Sequence
from math import prod

from torch import Tensor


class Scratch:
    """One piece of memory, lent to whoever asks next.

    Asking the system for megabytes per layer costs more than filling them.
    """

    def __init__(self) -> None:
        self._piece: Tensor | None = None

    def lend(self, shape: Sequence[int], like: Tensor) -> Tensor:
        """Lend scratch for a tensor; what was lent before must no longer be in use."""
        size = prod(shape)
        piece = self._piece
        kind = like.dtype, like.device
        if piece is None or piece.numel() < size or (piece.dtype, piece.device) != kind:
            self._piece = piece = like.new_empty(size)
        return piece[:size].view(*shape)
