"""Which order in memory images are passed in: on a CPU, channels last is faster to convolve."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Final

import torch
from torch import Tensor, nn

from recollect import nested

_PROBED: Final = 2  # examples; enough for BatchNorm


def channels_last(inputs: object) -> object:
    """Lay images out with the channels of a pixel side by side; no value changes."""
    return nested.map_leaves(_channels_last, inputs)


def _channels_last(leaf: Tensor) -> Tensor:
    return leaf.contiguous(memory_format=torch.channels_last) if leaf.ndim == 4 else leaf


def may_gain(model: nn.Module, device: torch.device) -> bool:
    """Whether the order could matter: two-dimensional convolutions on a CPU."""
    return device.type == "cpu" and any(isinstance(m, nn.Conv2d) for m in model.modules())


@torch.no_grad()
def takes_channels_last(
    call: Callable[[object], object],
    inputs: object,
    modes: Sequence[Callable[[], AbstractContextManager[None]]],
) -> bool | None:
    """Whether a model answers the same in both orders, in every mode; None if it takes neither.

    One that calls `view` on feature maps refuses the order; one that reaches into their storage
    would answer something else.
    """
    few = nested.map_leaves(lambda leaf: leaf[:_PROBED], inputs)
    answers = [_answers_the_same(call, few, mode) for mode in modes]
    known = [same for same in answers if same is not None]
    return all(known) if known else None


def _answers_the_same(
    call: Callable[[object], object],
    inputs: object,
    mode: Callable[[], AbstractContextManager[None]],
) -> bool | None:
    try:
        with mode():
            expected = nested.leaves(call(inputs))
    except Exception:
        return None  # the model's own trouble: the pass that follows will show it
    try:
        with mode():
            found = nested.leaves(call(channels_last(inputs)))
        return all(_close(a, b) for a, b in zip(expected, found, strict=True))
    except Exception:
        return False


def _close(first: Tensor, second: Tensor) -> bool:
    scale = float(first.abs().max()) if first.numel() else 0.0
    share = 1e-3
    if first.is_floating_point():  # in half precision the order of sums shows more
        share = max(share, 8 * torch.finfo(first.dtype).eps)
    return torch.allclose(first, second, rtol=share, atol=share * scale, equal_nan=True)
