"""What the learner shows to its predictor: the model in evaluation mode, and the memory."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import Any, Final

from torch import Tensor, nn

from recollect.memory import Memory
from recollect.network.network import Network
from recollect.rollback.transaction import Transaction

_AT_ONCE: Final = 256


class ModelView:
    """Answers a predictor; the transaction gets the way back of whatever is moved to do so.

    Args:
        network: The model.
        memory: The stored examples, if there are any.
        batch_size: Examples per pass; None passes all at once.
        moment: Equal as long as no step was made.
        transaction: Of the look.
    """

    def __init__(
        self,
        network: Network,
        memory: Memory | None,
        batch_size: int | None,
        moment: object,
        transaction: Transaction,
    ) -> None:
        self._network, self.memory = network, memory
        self._batch_size, self._transaction = batch_size, transaction
        # Also where somebody else has moved weights. Buffers are put back after every look.
        weights = network.model.parameters()
        self.moment = moment, [(weight.data_ptr(), weight._version) for weight in weights]

    def outputs(self, inputs: object) -> Any:
        """Return what the model answers to inputs in stored form."""
        return self._network.predict(inputs, batch_size=self._batch_size)

    def features(self, inputs: object, layer: str | None) -> Tensor:
        """Return what a layer of the model is given, (examples, features)."""
        path = self._network.last_layer if layer is None else layer
        try:
            hooks = self._network.model.get_submodule(path)._forward_pre_hooks
        except AttributeError:
            known = ", ".join(repr(name) for name, _ in self._network.model.named_modules() if name)
            raise ValueError(
                f"`layer` is {layer!r}, which the model does not have; choose one of {known}."
            ) from None
        self._transaction.on_failure(partial(_set_hooks, hooks, dict(hooks)))
        return self._network.features(inputs, path, size=self._batch_size or _AT_ONCE)

    def with_weights(self, values: Mapping[str, Tensor]) -> AbstractContextManager[None]:
        """Let the model have other weights and statistics in a block."""
        return _OtherWeights(self._network.model, values, self._transaction.on_failure)


def tensors_of(model: nn.Module) -> dict[str, Tensor]:
    """List a model's parameters and buffers by name."""
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


class _OtherWeights:
    """Points parameters and buffers to other tensors in a block; nothing is copied."""

    def __init__(self, model: nn.Module, values: Mapping[str, Tensor], on_failure: Any) -> None:
        own = tensors_of(model)
        self._others = [
            (tensor, values[name])
            for name, tensor in own.items()
            if name in values and values[name].shape == tensor.shape
        ]
        self._own = [(tensor, tensor.data) for tensor, _ in self._others]
        on_failure(partial(_point_to, self._own))

    def __enter__(self) -> None:
        _point_to(self._others)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _point_to(self._own)


def _point_to(values: list[tuple[Tensor, Tensor]]) -> None:
    for tensor, value in values:
        tensor.data = value


def _set_hooks(hooks: dict[int, Any], kept: dict[int, Any]) -> None:
    hooks.clear()
    hooks.update(kept)
