"""What a retrieval policy is, and what it may ask for."""

from abc import ABC, abstractmethod
from typing import ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from recollect.memory import Memory, MemoryColumn


@runtime_checkable
class Probe(Protocol):
    """Losses of slots, measured when a retrieval policy calls for them."""

    def losses_before(self, slots: Int64[Tensor, " slots"]) -> Float[Tensor, " slots"]:
        """Loss of each slot's example under the model as it is."""

    def losses_after(self, slots: Int64[Tensor, " slots"]) -> Float[Tensor, " slots"]:
        """Loss of each slot's example after a virtual step on the incoming batch alone."""

    def note(
        self, column: str, slots: Int64[Tensor, " slots"], values: Float[Tensor, " slots"]
    ) -> None:
        """Let the learner write numbers to a memory column that the policy declared."""


class Retrieval(ABC):
    """Choose the slots to replay beside the incoming batch."""

    #: Whether it may draw from torch's own generator, and not only from the one it is given. The
    #: learner then looks after torch's.
    draws: ClassVar[bool] = True
    #: The most slots `select` returns.
    replay: int

    @property
    def columns(self) -> tuple[MemoryColumn, ...]:
        """What the memory keeps of each stored example for the policy, a number each."""
        return ()

    @abstractmethod
    def select(
        self, memory: Memory, probe: Probe, rng: torch.Generator
    ) -> Int64[Tensor, " replayed"]:
        """Return distinct filled slots, at most `replay`; fewer only while the memory holds fewer.

        Args:
            memory: To read. It is never empty here.
            probe: Measurements, made when called for.
            rng: All randomness comes from here.
        """


def check_counts(**counts: object) -> None:
    """Refuse numbers of examples that are not whole numbers from 1."""
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValueError(f"`{name}` is {count!r}; pass a whole number from 1.")


def draw_slots(memory: Memory, count: int, rng: torch.Generator) -> Int64[Tensor, " drawn"]:
    """Draw `count` distinct filled slots, every set of them equally likely."""
    count = min(count, len(memory))
    # Ask for a permutation only when slots are few; else draw until all differ, which is as uniform
    # and does not grow with the memory.
    if count * count > len(memory):
        return torch.randperm(len(memory), generator=rng)[:count]
    while True:
        drawn = torch.randint(len(memory), (count,), generator=rng)
        if len(set(drawn.tolist())) == count:
            return drawn
