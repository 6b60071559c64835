"""All or nothing: a step that fails or is interrupted leaves what was before it, or all of it."""

from collections.abc import Callable
from typing import TypeVar

import torch

Result = TypeVar("Result")
Action = Callable[[], object]


class Transaction:
    """Decide first, then write: before the decision a step is undone, behind it completed.

    An exception may come from anywhere, also from outside: Ctrl-C raises between any two lines, in
    torch's Python code too, and once more while the first is dealt with. So every action registered
    here sets something *to* a value that was found out before, and may be run again from its start.
    """

    def __init__(self) -> None:
        self._ways_back: list[Action] = []
        self._afterwards: list[Action] = []
        self._writing: list[Action] = []
        self._is_decided = self._is_settled = False
        self.keeps_weights = False
        self._takes_gradients = torch.is_grad_enabled()

    def on_failure(self, way_back: Action) -> None:
        """Run `way_back` if the step does not come to its decision; the latest first.

        Register it when what it needs is at hand, and before anything changes.
        """
        self._ways_back.append(way_back)

    def afterwards(self, action: Action) -> None:
        """Run `action` however the step ends."""
        self._afterwards.append(action)

    def write(self, action: Action) -> None:
        """Leave `action` for when all is decided; it must not fail for reasons of its own."""
        self._writing.append(action)

    def run(self, step: Callable[["Transaction"], Result]) -> Result:
        """Run `step`, which decides by returning."""
        # Each level catches what interrupts the one inside it, on its first line or its last.
        try:
            try:
                try:
                    result = step(self)
                    self._is_decided = True
                finally:
                    self._settle()
            finally:
                self._settle()
        finally:
            self._settle()
        return result

    def _settle(self) -> None:
        """Write what was decided, or put back what was there."""
        if self._is_settled:
            return
        # An interrupt right behind the switch of a `no_grad` block leaves it as the block set it.
        if torch.is_grad_enabled() != self._takes_gradients:
            torch.set_grad_enabled(self._takes_gradients)
        for action in self._afterwards:
            action()
        for action in self._writing if self._is_decided else reversed(self._ways_back):
            action()
        self._is_settled = True
