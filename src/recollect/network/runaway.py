"""Refuse steps that nothing could be learnt after: their numbers are none, or far too large."""

import math
from collections.abc import Iterable, Mapping
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from recollect.errors import NonFiniteError

# Single precision rounds any step below ten million away beside it: nothing would be learnt.
LARGEST_WEIGHT: Final = 1e15


def check_gradients(gradients: Mapping[str, Tensor]) -> float:
    """Refuse a gradient with NaN or infinity in it, or too large to be squared; name the parameter.

    Returns:
        The length of the whole gradient.
    """
    length = math.hypot(*_lengths(gradients.values()))
    if math.isfinite(length):
        return length
    for name, gradient in gradients.items():
        if not bool(torch.isfinite(gradient).all()):
            raise NonFiniteError(
                f"the gradient of `{name}` is NaN or infinite though the loss is not; look for a "
                "division, logarithm or root of zero. Nothing was learnt or stored."
            )
    largest = max(gradients, key=lambda name: float(gradients[name].abs().max()))
    raise NonFiniteError(
        f"the gradient of `{largest}` reaches {float(gradients[largest].abs().max()):.0e}, and "
        "nothing could be learnt after such a step; look for inputs or labels as large. Nothing "
        "was learnt or stored."
    )


def check_rates(optimizer: torch.optim.Optimizer) -> None:
    """Refuse a learning rate that is no number."""
    for number, group in enumerate(optimizer.param_groups):
        rate = float(group.get("lr", 0.0))
        if not math.isfinite(rate):
            raise NonFiniteError(
                f"`lr` of group {number} of the optimizer is {rate}; set it to a finite number. "
                "Nothing was learnt or stored."
            )


def check_reach(optimizer: torch.optim.Optimizer, length: float) -> None:
    """Refuse a step of plain SGD that throws weights out of reach.

    Args:
        optimizer: It moves a weight by the learning rate times its gradient.
        length: Of the gradient; no entry is larger.
    """
    furthest = max(abs(float(group["lr"])) for group in optimizer.param_groups) * length
    if furthest > LARGEST_WEIGHT:
        raise _out_of_reach(furthest)


def check_moved(layers: Mapping[str, nn.Module], parameters: Mapping[str, nn.Parameter]) -> None:
    """Refuse weights or statistics that are no numbers, or too large for a later step to count.

    Args:
        layers: From `layers_with_statistics`.
        parameters: The weights.
    """
    with torch.no_grad():
        largest = _longest(parameters.values())
    if not largest <= LARGEST_WEIGHT:  # which NaN is not, either
        raise _out_of_reach(largest)
    check_statistics(layers)


def layers_with_statistics(model: nn.Module) -> dict[str, nn.Module]:
    """Return the layers that keep running means and variances, by path."""
    return {
        path: layer
        for path, layer in model.named_modules()
        if isinstance(layer, _NormBase) and layer._buffers
    }


def check_statistics(layers: Mapping[str, nn.Module]) -> None:
    """Refuse running means and variances that have overflowed."""
    if not layers:
        return
    statistics = [
        (path, name, statistic)
        for path, layer in layers.items()
        for name, statistic in layer._buffers.items()
        if statistic is not None and statistic.is_floating_point()
    ]
    if math.isfinite(_longest(statistic for _, _, statistic in statistics)):
        return
    for path, name, statistic in statistics:
        if not bool(torch.isfinite(statistic).all()):
            raise NonFiniteError(
                f"`{name}` of `{path}` would become NaN or infinite; look for inputs that are far "
                "too large. Nothing was learnt or stored."
            )


def _out_of_reach(distance: float) -> NonFiniteError:
    return NonFiniteError(
        f"this step would move weights by {distance:.0e}, and nothing could be learnt after it; "
        "lower the learning rate, or look for inputs or labels that are far too large. Nothing was "
        "learnt or stored."
    )


def _longest(tensors: Iterable[Tensor]) -> float:
    """Return the sum of their Euclidean lengths: at least the largest of all, and NaN if one is."""
    return sum(_lengths(tensors), 0.0)


def _lengths(tensors: Iterable[Tensor]) -> list[float]:
    """Return the Euclidean length of each."""
    listed = list(tensors)
    if not listed:
        return []
    lengths = torch._foreach_norm(listed)
    if listed[0].device.type == "cpu":
        return [length.item() for length in lengths]
    # Elsewhere each reading is waited for, so there is one.
    found: list[float] = torch.stack([length.float() for length in lengths]).tolist()
    return found
