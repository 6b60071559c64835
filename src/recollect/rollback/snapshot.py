"""Put a model and its optimizer back exactly as they were."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from recollect.rollback.buffers import BufferCopies


class Snapshot:
    """A copy of buffers, and of weights and optimizer state, refreshed in place.

    The room for the copies is taken once; refreshing them is one fused copy. Each `take` returns
    the way back, which may be gone more than once.
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self._parameters, self._optimizer = list(model.parameters()), optimizer
        self._buffers = BufferCopies(model.modules())
        self._weights = _Copies()

    def take_buffers(self) -> Callable[[], None]:
        """Remember the statistics a forward pass may move."""
        self._buffers.take()
        return self._buffers.restore

    def take_weights(self) -> Callable[[], None]:
        """Remember what the optimizer is about to move, and the gradients it will be given."""
        state, groups = self._optimizer.state, self._optimizer.param_groups
        live = [parameter.data for parameter in self._parameters]
        for entry in (*state.values(), *groups):  # some optimizers count their steps in the groups
            live += [value for value in entry.values() if isinstance(value, Tensor)]
        self._weights.take(live)
        kept_state = {parameter: dict(entry) for parameter, entry in state.items()}
        kept_groups = [dict(group) for group in groups]
        held = {id(p): p for p in self._parameters}
        held |= {id(p): p for group in groups for p in group["params"]}
        gradients = [(parameter, parameter.grad) for parameter in held.values()]

        def restore() -> None:
            for parameter, gradient in gradients:
                parameter.grad = gradient
            self._weights.restore()
            state.clear()
            # Entries of their own: some optimizers fill them in place.
            state.update({parameter: dict(entry) for parameter, entry in kept_state.items()})
            for group, kept in zip(groups, kept_groups, strict=True):
                group.clear()
                group.update(kept)

        return restore


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
