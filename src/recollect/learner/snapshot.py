"""Put a model and its optimizer back exactly as they were."""

import torch
from torch import Tensor, nn

from recollect.learner.buffers import BufferCopies


class Snapshot:
    """A copy of buffers, and of weights and optimizer state, refreshed in place.

    A step that fails half way (a loss that overflows in the third iteration, a policy that raises)
    must leave no trace. The room for the copies is taken once; refreshing them is one fused copy.
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self._parameters, self._optimizer = list(model.parameters()), optimizer
        self._buffers = BufferCopies(model)
        self._weights = _Copies()
        self._state: dict[Tensor, dict[str, object]] | None = None
        self._groups: list[dict[str, object]] = []

    def take_buffers(self) -> None:
        """Remember the statistics a forward pass may move."""
        self._state = None
        self._buffers.take()

    def take_weights(self) -> None:
        """Remember what the optimizer is about to move, the first time after `take_buffers`."""
        if self._state is not None:
            return
        state, groups = self._optimizer.state, self._optimizer.param_groups
        live = [parameter.data for parameter in self._parameters]
        for entry in (*state.values(), *groups):  # some optimizers count their steps in the groups
            live += [value for value in entry.values() if isinstance(value, Tensor)]
        self._weights.take(live)
        self._state = {parameter: dict(entry) for parameter, entry in state.items()}
        self._groups = [dict(group) for group in groups]

    def restore(self) -> None:
        """Put back what was remembered."""
        self._buffers.restore()
        for parameter in self._parameters:
            parameter.grad = None
        if self._state is not None:
            self._weights.restore()
            self._optimizer.state.clear()
            self._optimizer.state.update(self._state)
            for group, kept in zip(self._optimizer.param_groups, self._groups, strict=True):
                group.clear()
                group.update(kept)


class _Copies:
    """Copies of tensors, in room that is kept as long as the tensors stay the same."""

    def __init__(self) -> None:
        self._live: list[Tensor] = []
        self._copies: list[Tensor] = []

    @torch.no_grad()
    def take(self, live: list[Tensor]) -> None:
        if not live:
            return
        if [t.data_ptr() for t in live] == [t.data_ptr() for t in self._live]:
            torch._foreach_copy_(self._copies, live)
        else:
            self._live, self._copies = live, [tensor.clone() for tensor in live]

    @torch.no_grad()
    def restore(self) -> None:
        for tensor, copy in zip(self._live, self._copies, strict=True):
            tensor.copy_(copy)
