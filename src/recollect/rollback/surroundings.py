"""What a step switches on its way and an interrupt may leave switched."""

from collections.abc import Iterable

import torch
from torch import nn

from recollect.rollback.generators import generator_states, set_generator_states


class Surroundings:
    """Modes of the model's modules, autocast, and torch's own generators, as they are now.

    Args:
        modules: All of a model's; they have modes.
        device: Where it lives.
    """

    def __init__(self, modules: Iterable[nn.Module], device: torch.device) -> None:
        self._device = device
        self._modes = [(module, module.training) for module in modules]
        self._drawn = generator_states(device)
        kind = device.type
        self._autocast: tuple[bool, torch.dtype] | None = None
        if torch.amp.is_autocast_available(kind):  # of some devices torch knows no autocast
            self._autocast = torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)
        self._caches_casts = torch.is_autocast_cache_enabled()
        self._depth = _autocast_depth()

    def put_back(self) -> None:
        """Switch everything back."""
        for module, mode in self._modes:
            module.training = mode
        if self._autocast is not None:
            torch.set_autocast_enabled(self._device.type, self._autocast[0])
            torch.set_autocast_dtype(self._device.type, self._autocast[1])
        torch.set_autocast_cache_enabled(self._caches_casts)
        while _autocast_depth() > self._depth:  # else no block behind it lets go of its casts
            if torch.autocast_decrement_nesting() == 0:
                torch.clear_autocast_cache()
        set_generator_states(self._device, self._drawn)


def _autocast_depth() -> int:
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()
