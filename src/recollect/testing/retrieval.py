"""Conformance of a retrieval policy."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from recollect.memory import Memory
from recollect.retrieval import Retrieval
from recollect.testing.watching import check_indices, fail, filled_memory, watched


def check_retrieval(build: Callable[[], Retrieval]) -> None:
    """Check that a retrieval policy does what the learner relies on.

    The check uses memories that hold one example, fewer than `replay`, as many, and far more, full
    or not. The policy must return distinct filled slots, `replay` of them if the memory holds as
    many. It must call its probe for filled slots only, and not change the memory or global
    generators. With the same state of the generator, a new instance and a used one must choose the
    same slots, because the learner neither saves nor restores a retrieval policy.

    Args:
        build: Makes a new policy at every call: the class itself if it needs no arguments, else a
            function without arguments.

    Raises:
        AssertionError: what broke, and on which memory.

    Example:
        >>> from recollect.retrieval import MaximallyInterfered
        >>> check_retrieval(lambda: MaximallyInterfered(replay=3, candidates=9))
    """
    if isinstance(build, Retrieval) or not callable(build):
        raise TypeError(f"`build` is {build!r}; pass a function that makes a policy, or its class.")
    used = build()
    if not isinstance(used, Retrieval):
        raise TypeError(f"`build` made {used!r}; make an instance of a subclass of `Retrieval`.")
    replay = used.replay
    if isinstance(replay, bool) or not isinstance(replay, int) or replay < 1:
        fail(used, f"has `replay` = {replay!r}; the learner needs a whole number from 1.")
    for filled in sorted({1, max(1, replay - 1), replay, replay + 1, 3 * replay, 12 * replay}):
        for capacity in (filled, 2 * filled):
            for seed in range(3):
                memory = filled_memory(filled, capacity, seed=seed)
                for column in used.columns:
                    memory.declare(column.name, torch.empty(1), default=column.default)
                case = f"a memory with {filled} of {capacity} slots filled"
                slots = _selected(build(), memory, seed, case)
                if not torch.equal(slots, _selected(build(), memory, seed, case)):
                    fail(used, f"chose differently from the same generator ({case}).")
                if not torch.equal(slots, _selected(used, memory, seed, case)):
                    fail(
                        used,
                        f"chose differently after having been used ({case}); what it remembers is "
                        "lost at every checkpoint. Keep facts about slots in the memory.",
                    )


@dataclass(frozen=True)
class _MadeUpLosses:
    """A probe whose losses follow from the slot."""

    retrieval: Retrieval
    memory: Memory
    seed: int

    def losses_before(self, slots: Tensor) -> Tensor:
        return self._losses(slots, 0)

    def losses_after(self, slots: Tensor) -> Tensor:
        return self._losses(slots, 1)

    def note(self, column: str, slots: Tensor, values: Tensor) -> None:
        check_indices(self.retrieval, slots, "the slots that it notes numbers of")
        if column not in {declared.name for declared in self.retrieval.columns}:
            fail(self.retrieval, f"notes {column!r}, which its `columns` do not name.")
        if values.shape != slots.shape or not bool(torch.isfinite(values).all()):
            fail(self.retrieval, f"notes {values} of {len(slots)} slots; give a number for each.")

    def _losses(self, slots: Tensor, salt: int) -> Tensor:
        check_indices(self.retrieval, slots, "the slots it asked its probe about")
        if slots.numel() and not 0 <= int(slots.min()) <= int(slots.max()) < len(self.memory):
            fail(
                self.retrieval,
                f"asked for the losses of slots {slots.tolist()}; filled are 0 to "
                f"{len(self.memory) - 1}.",
            )
        rng = torch.Generator().manual_seed(2 * self.seed + salt)
        return torch.rand(len(self.memory), generator=rng)[slots]


def _selected(retrieval: Retrieval, memory: Memory, seed: int, case: str) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    with watched(retrieval, f"`select` on {case}", memory):
        answer = retrieval.select(memory, _MadeUpLosses(retrieval, memory, seed), rng)
    slots = check_indices(retrieval, answer, "the slots to replay")
    expected = min(retrieval.replay, len(memory))
    if len(slots) != expected:
        fail(retrieval, f"returned {len(slots)} slots on {case}; return {expected}.")
    if len(set(slots.tolist())) != len(slots):
        fail(retrieval, f"returned a slot twice on {case}: {slots.tolist()}; return distinct ones.")
    if not 0 <= int(slots.min()) <= int(slots.max()) < len(memory):
        fail(
            retrieval,
            f"returned slots {slots.tolist()} on {case}; filled are 0 to {len(memory) - 1}.",
        )
    return slots
