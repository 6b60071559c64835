"""Whose gradient is it? Sentinel seeds tell for every element that arrives at a node.

The backward pass is linear, and a power of two scales it without rounding. So it is run with ones
and with powers of two as seeds, and the ratio of each element names its example. Where several
examples meet, the ratio is no power of two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from recollect.gradients.capture import Graph, Place, gradients_at
from recollect.gradients.rows.layout import Layout, fit

_DIGITS: Final = 32  # examples that one pass can tell apart
_TINY: Final = 2.0**-100  # what is smaller may have lost bits when it was scaled

State = Literal["mixed", "silent"] | Layout


@dataclass(slots=True)
class Found:
    """What a place holds: nothing, gradients of several examples at once, or a layout.

    Attributes:
        state: Which of these.
        seen: Examples whose gradient is not zero.
        finite: Whether all numbers are.
    """

    state: State
    seen: frozenset[int]
    finite: bool


@torch.no_grad()
def labelled(
    losses: Float[Tensor, " examples"], graph: Graph, places: Sequence[Place]
) -> dict[Place, Found]:
    """Find out whose gradients arrive at each place."""
    count = len(losses)
    once = gradients_at(losses, torch.ones_like(losses), graph, places)
    labels: list[Tensor | None] = [None] * len(places)
    pure = [True] * len(places)
    index, worth = torch.arange(count, device=losses.device), 1
    while worth < count:
        digits = index // worth % _DIGITS
        seeds = torch.exp2((digits - _DIGITS // 2).to(losses.dtype))
        scaled = gradients_at(losses, seeds, graph, places)
        for at, (one, other) in enumerate(zip(once, scaled, strict=True)):
            if one is None or other is None or not pure[at]:
                continue
            mantissa, exponent = torch.frexp(_wide(other) / _wide(one))
            present = _present(one) & _present(other)
            digit = exponent.to(torch.int64) - 1 + _DIGITS // 2
            fits = (mantissa == 0.5) & (digit >= 0) & (digit < _DIGITS)
            if not bool((fits | ~present).all()):
                pure[at] = False
                continue
            mine = torch.where(present, digit * worth, -count)
            before = labels[at]
            labels[at] = mine if before is None else before + mine
        worth *= _DIGITS
    return {
        place: _found(one, label, is_pure, count)
        for place, one, label, is_pure in zip(places, once, labels, pure, strict=True)
    }


def _found(one: Tensor | None, label: Tensor | None, is_pure: bool, count: int) -> Found:
    if one is None:
        return Found("silent", frozenset(), finite=True)
    finite = bool(torch.isfinite(one).all())
    if not is_pure:
        return Found("mixed", frozenset(), finite)
    assert label is not None
    label = label.clamp(min=-1)
    if bool((label >= count).any()):
        return Found("mixed", frozenset(), finite)
    seen = frozenset(torch.unique(label).tolist()) - {-1}
    if not seen:
        return Found("silent", seen, finite)
    return Found(fit(label, count), seen, finite)


def _wide(tensor: Tensor) -> Tensor:
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()


def _present(tensor: Tensor) -> Tensor:
    return torch.isfinite(tensor) & (tensor.abs() > _TINY)
