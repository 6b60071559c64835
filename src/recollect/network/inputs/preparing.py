"""From examples as they are stored to what the model takes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from recollect import nested
from recollect.network.explain import EXPLAINED, transform_failed
from recollect.ragged import Ragged, pad

Transform = Callable[[Any], object]
Collate = Callable[[list[Any]], object]


@dataclass(frozen=True, slots=True)
class Preparation:
    """Put examples together, move them to the device, transform them, and change those that train.

    Attributes:
        collate: A list of examples to tensors. None pads tensors of differing shape with zeros and
            hands a list of other objects on.
        transform: Stored form to model input.
        augment: Model input to model input, for examples that train.
    """

    collate: Collate | None = None
    transform: Transform | None = None
    augment: Transform | None = None

    @property
    def may_draw(self) -> bool:
        """Whether random numbers may be drawn on the way."""
        return not (self.collate is None and self.transform is None and self.augment is None)

    def __call__(self, inputs: object, device: torch.device, *, trains: bool) -> object:
        """Return what the model takes."""
        if self.collate is not None:
            prepared = _explained(self.collate, examples_in(inputs), "collate")
        else:
            prepared = inputs if isinstance(inputs, Tensor) else nested.map_columns(_dense, inputs)
        prepared = _moved(prepared, device)
        if self.transform is not None:
            prepared = _moved(_explained(self.transform, prepared, "transform"), device)
        if trains and self.augment is not None:
            prepared = _explained(self.augment, prepared, "augment")
        return prepared


def examples_in(inputs: object) -> list[object]:
    """List the examples of a batch, each in the structure of the inputs."""
    if isinstance(inputs, Tensor | Ragged):
        return list(inputs)
    columns = [list(column) for column in nested.columns(inputs)]
    return [nested.replace_leaves(inputs, row) for row in zip(*columns, strict=True)]


def _explained(change: Callable[[Any], object], given: object, what: str) -> object:
    try:
        return change(given)
    except EXPLAINED as error:
        raise transform_failed(error, given, what=what) from error


def _dense(column: Tensor | Ragged) -> object:
    if isinstance(column, Tensor):
        return column
    return pad(column) if column.tensors() else list(column)


def _moved(prepared: object, device: torch.device) -> object:
    """Move every tensor in a nesting to the device; other objects stay, for a transform."""
    if isinstance(prepared, Tensor):
        return prepared.to(device)
    if isinstance(prepared, dict):
        return {key: _moved(value, device) for key, value in prepared.items()}
    if isinstance(prepared, tuple):
        return tuple(_moved(value, device) for value in prepared)
    if isinstance(prepared, list):
        return [_moved(value, device) for value in prepared]
    return prepared
