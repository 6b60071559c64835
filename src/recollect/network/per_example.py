"""Losses as people have them, as one value per example."""

import copy
from collections.abc import Callable
from typing import Any, cast

from torch import Tensor, nn

Loss = Callable[[Any, Any], Tensor]


def per_example_loss(loss: Loss | None) -> Loss | None:
    """Return the form of a loss that gives each example's own; None for the default.

    A module of torch's is asked not to reduce. Values of more than one dimension are averaged over
    all but the first; where labels may be ignored (`ignore_index`), over those that are not.
    """
    if isinstance(loss, nn.CrossEntropyLoss) and _is_plain(loss):
        return None
    if isinstance(loss, nn.modules.loss._Loss):
        each = copy.copy(loss)
        each.reduction = "none"
        ignored = each.ignore_index if isinstance(each, nn.CrossEntropyLoss | nn.NLLLoss) else None
        return _Averaged(cast("Loss", each), ignored)
    return None if loss is None else _Averaged(loss, None)


class _Averaged:
    """A loss whose values are averaged over everything but examples."""

    def __init__(self, loss: Loss, ignored: int | None) -> None:
        self._loss, self._ignored = loss, ignored

    def __call__(self, outputs: Any, labels: Any) -> Tensor:
        losses = self._loss(outputs, labels)
        if not isinstance(losses, Tensor) or losses.ndim < 2:
            return losses
        values = losses.flatten(1)
        if self._ignored is None or labels.shape != losses.shape:
            return values.mean(1)
        counted = (labels.flatten(1) != self._ignored).sum(1)
        return values.sum(1) / counted.clamp_min(1)


def _is_plain(loss: nn.CrossEntropyLoss) -> bool:
    """Whether it is the default loss: cross entropy on logits, with nothing more to it."""
    return loss.weight is None and loss.label_smoothing == 0 and loss.ignore_index == -100
