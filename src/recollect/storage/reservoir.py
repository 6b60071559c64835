"""Reservoir sampling, and the admission it shares with its confident variant."""

from dataclasses import dataclass
from typing import final

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
    M / t and takes a slot at random.

    References:
        Chen and Lin, Algorithm 1, with the exact bounds of Vitter (1985): paper note P3.
    """

    @override
    def admit(self, labels: Tensor, memory: Memory, rng: torch.Generator) -> Tensor:
        return reservoir_admission(len(labels), memory, rng)

    @override
    def place(
        self, labels: Tensor, memory: Memory, evidence: Evidence, rng: torch.Generator
    ) -> Placement:
        slots = torch.arange(len(memory), len(memory) + len(labels))
        num_replacing = len(labels) - max(0, memory.capacity - len(memory))
        if num_replacing > 0:
            slots[-num_replacing:] = torch.randint(memory.capacity, (num_replacing,), generator=rng)
        return Placement(slots)


def reservoir_admission(
    num_newcomers: int, memory: Memory, rng: torch.Generator
) -> Int64[Tensor, " admitted"]:
    """Admit the t-th example of the stream with probability min(1, M / t)."""
    if memory.seen + num_newcomers <= memory.capacity:
        return torch.arange(num_newcomers)
    order = torch.arange(memory.seen + 1, memory.seen + num_newcomers + 1)  # t
    # In double precision: 2^-53 is far below any M / t a stream can reach.
    drawn = torch.rand(num_newcomers, generator=rng, dtype=torch.float64) * order
    return (drawn < memory.capacity).nonzero().squeeze(1)
