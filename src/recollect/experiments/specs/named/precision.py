"""What numbers a run computes with: float32, bfloat16 by autocast, or float64."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from recollect import nested
from recollect.choices import Precision

Transform = Callable[[Any], Any]


def with_precision(
    model: nn.Module, transform: Transform, precision: Precision
) -> tuple[nn.Module, Transform]:
    """Return a model and what feeds it in the numbers asked for.

    Weights are float32 under bfloat16. Under float64 they are the same weights, and what the
    transform gives is widened; what the memory stores stays as it is.
    """
    if precision == "float64":
        return model.double(), _Widened(transform)
    return model, transform


def casting(precision: Precision) -> Callable[[], AbstractContextManager[Any]]:
    """Return what a step and an evaluation are made within.

    It is entered for each step anew: autocast keeps its copies of weights until it is left.
    """
    if precision == "bfloat16":
        return partial(torch.autocast, "cpu", dtype=torch.bfloat16)
    return nullcontext


class _Widened:
    def __init__(self, transform: Transform) -> None:
        self._transform = transform

    def __call__(self, inputs: Any) -> Any:
        return nested.map_leaves(_widened, self._transform(inputs))


def _widened(leaf: Tensor) -> Tensor:
    return leaf.double() if leaf.is_floating_point() else leaf
