"""Reservoir sampling, and the admission it shares with its confident variant."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Int64
from torch import Tensor
from typing_extensions import override

from recollect.memory import Memory
from recollect.storage.storage import Evidence, Placement, Storage


@final
@dataclass(frozen=True)
class Reservoir(Storage):
    """Keep every example seen so far with the same probability (reservoir sampling).

    With capacity M the t-th example of the stream, counted from 1, enters with probability exactly
    M / t and takes a slot at random. Slots that were freed by deleting examples take part in that
    draw: a newcomer that draws one fills it, so that all other examples keep the probability M / t.

    References:
        Chen and Lin, Algorithm 1, with the exact bounds of Vitter (1985): paper note P3.
    """

    needs_evidence: ClassVar[bool] = False
    has_scores: ClassVar[bool] = False
    draws: ClassVar[bool] = False

    @override
    def admit(self, labels: Tensor, memory: Memory, rng: torch.Generator) -> Tensor:
        return reservoir_admission(len(labels), memory, rng)

    @override
    def place(
        self, labels: Tensor, memory: Memory, evidence: Evidence, rng: torch.Generator
    ) -> Placement:
        count, filled = labels.shape[0], len(memory)
        if memory.is_full:
            return Placement(torch.randint(memory.capacity, (count,), generator=rng))
        is_growing = memory.enters_at_most < 1
        if filled < min(memory.seen, memory.capacity) and not is_growing:
            return Placement(self._among_freed(count, memory, rng))
        slots = torch.arange(filled, filled + count)
        num_replacing = count - (memory.capacity - filled)
        if num_replacing > 0:
            replaced = torch.randint(memory.capacity, (num_replacing,), generator=rng)
            slots[-num_replacing:] = replaced
        return Placement(slots)

    def _among_freed(
        self, count: int, memory: Memory, rng: torch.Generator
    ) -> Int64[Tensor, " admitted"]:
        """Draw slots, some of which hold nothing; these are filled in order."""
        filled, slots = len(memory), torch.empty(count, dtype=torch.int64)
        num_first = max(0, memory.capacity - memory.seen)  # of the stream: all of them are kept
        drawn: list[int] = torch.randint(memory.capacity, (count,), generator=rng).tolist()
        for newcomer, slot in enumerate(drawn):
            if newcomer < num_first or slot >= filled:
                slots[newcomer], filled = filled, filled + 1
            else:
                slots[newcomer] = slot
        return slots


def reservoir_admission(
    num_newcomers: int, memory: Memory, rng: torch.Generator
) -> Int64[Tensor, " admitted"]:
    """Admit the t-th example of the stream with probability min(1, M / t)."""
    most = memory.enters_at_most
    if memory.seen + num_newcomers <= memory.capacity and most == 1:
        return torch.arange(num_newcomers)
    # In double precision: 2^-53 is far below any M / t a stream can reach. And as Python numbers:
    # for a batch, five tiny tensor operations cost more.
    drawn = torch.rand(num_newcomers, generator=rng, dtype=torch.float64).tolist()
    order = range(memory.seen + 1, memory.seen + num_newcomers + 1)  # t
    entering = [
        i for i, t in enumerate(order) if drawn[i] * t < memory.capacity and drawn[i] < most
    ]
    return torch.tensor(entering, dtype=torch.int64)
