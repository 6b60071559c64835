"""Notice that a model is not the one it was."""

from itertools import chain
from typing import Any

import torch
from torch import nn


class ModelWatch:
    """Notice that a model has other layers or parameters, or an optimizer holds others.

    A head that is widened in mid-stream is a new layer with new parameters, and what was built
    around the old ones must be built anew. Asked before every step, so no module is walked: the
    dictionaries looked at live as long as their modules do.
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self._model, self._optimizer = model, optimizer
        modules = list(self._model.modules())
        tables: list[dict[str, Any]] = [module._modules for module in modules]
        tables += [module._parameters for module in modules]
        self._tables = [table for table in tables if table]
        self._empty = [table for table in tables if not table]
        self._known_tables = [dict(table) for table in self._tables]
        self._known_held = [list(held) for held in self._held()]
        parameters = chain(self._model.parameters(), *self._known_held)
        self._has_single_numbers = any(parameter.numel() == 1 for parameter in parameters)
        self._known_ids = self._ids()

    def sees_another(self) -> bool:
        """Whether layers or parameters are others than those remembered."""
        # Containers look whether entries are the same object before they compare them: in all steps
        # but a few that is all that happens, and nothing is cheaper. Other modules are unequal,
        # other tensors have no truth value, unless they hold a single number.
        try:
            same = self._tables == self._known_tables and self._held() == self._known_held
        except RuntimeError:
            return True
        if not same or any(self._empty):
            return True
        return self._has_single_numbers and self._ids() != self._known_ids

    def _held(self) -> list[list[nn.Parameter]]:
        return [group["params"] for group in self._optimizer.param_groups]

    def _ids(self) -> list[int]:
        entries = chain(*(table.values() for table in self._tables), *self._held())
        return list(map(id, entries))
