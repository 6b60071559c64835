"""Put a model and its optimizer back exactly as they were."""

import torch
from torch import Tensor, nn


class Snapshot:
    """A copy of every weight, buffer and optimizer state, refreshed in place.

    `observe` takes one before it changes anything, so that a step which fails half way (a loss that
    overflows in the third iteration, a policy that raises) leaves no trace. The room for the copy
    is taken once; refreshing it is one fused copy.
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self._model, self._optimizer = model, optimizer
        self._live: list[Tensor] = []
        self._copies: list[Tensor] = []
        self._other_state: dict[Tensor, dict[str, object]] = {}

    @torch.no_grad()
    def take(self) -> None:
        """Remember everything as it is now."""
        state = self._optimizer.state
        live = [parameter.data for parameter in self._model.parameters()]
        live += list(self._model.buffers())
        live += [v for entry in state.values() for v in entry.values() if isinstance(v, Tensor)]
        if _same_tensors(live, self._live):
            torch._foreach_copy_(self._copies, live)
        else:
            self._live, self._copies = live, [tensor.clone() for tensor in live]
        self._other_state = {parameter: dict(entry) for parameter, entry in state.items()}

    @torch.no_grad()
    def restore(self) -> None:
        """Put everything back."""
        for tensor, copy in zip(self._live, self._copies, strict=True):
            tensor.copy_(copy)
        self._optimizer.state.clear()
        self._optimizer.state.update(self._other_state)
        for parameter in self._model.parameters():
            parameter.grad = None


def _same_tensors(first: list[Tensor], second: list[Tensor]) -> bool:
    if len(first) != len(second):
        return False
    return all(
        a.data_ptr() == b.data_ptr() and a.shape == b.shape
        for a, b in zip(first, second, strict=True)
    )
