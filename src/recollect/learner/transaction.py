"""All or nothing: a step that fails leaves everything as it was, to the bit."""

from collections.abc import Callable, Mapping
from types import TracebackType

import torch

from recollect.learner.randomness import DrawingFrom
from recollect.learner.snapshot import Snapshot
from recollect.memory import Memory
from recollect.storage import Storage


class Transaction:
    """Remember what a step may change on entry; put it back if the step raises.

    Weights and optimizer state are remembered by `before_weights_move`: a step refused before its
    first update needs no copy of them, nor does one behind whose only update nothing can raise.

    Inside the block torch's own generator, from which dropout draws, continues the learner's; with
    `device` None, nothing in the step draws from it, and it is left alone.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        generators: Mapping[str, torch.Generator],
        memory: Memory | None,
        storage: Storage | None,
        device: torch.device | None,
    ) -> None:
        self._snapshot, self._generators = snapshot, generators
        self._memory, self._storage = memory, storage
        self._drawing = None if device is None else DrawingFrom(generators["model"], device)
        self._ways_back: list[Callable[[], object]] = []
        self._keeps_weights = False

    def __enter__(self) -> "Transaction":
        self._snapshot.take_buffers()
        # The model's generator is remembered by `DrawingFrom`.
        self._states = [(g, g.get_state()) for n, g in self._generators.items() if n != "model"]
        if self._memory is not None:
            self._counters = self._memory.clock, self._memory.seen
        self._storage_state = {} if self._storage is None else self._storage.state()
        if self._drawing is not None:
            self._drawing.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._drawing is not None:
            self._drawing.advance = kind is None
            self._drawing.__exit__(kind, error, trace)
        if kind is None:
            return
        # An interrupt right behind the switch of a `no_grad` block leaves it as the block set it;
        # a step begins with gradients on.
        torch.set_grad_enabled(True)
        for way_back in reversed(self._ways_back):
            way_back()
        if self._storage is not None and (self._storage_state or self._storage.state()):
            self._storage.restore(self._storage_state)
        if self._memory is not None:
            self._memory.clock, self._memory.seen = self._counters
        for generator, state in self._states:
            generator.set_state(state)
        self._snapshot.restore()

    def keep_weights(self) -> None:
        """Say that something behind an update may raise: weights must be remembered."""
        self._keeps_weights = True

    def before_weights_move(self) -> None:
        """Remember weights and optimizer state, if need be and once a transaction."""
        if self._keeps_weights:
            self._snapshot.take_weights()

    def on_failure(self, way_back: Callable[[], object]) -> None:
        """Run `way_back` if the step fails; the latest first."""
        self._ways_back.append(way_back)
