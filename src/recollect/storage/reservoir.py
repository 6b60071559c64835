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
        count, filled = labels.shape[0], len(memory)
        if memory.is_full:
            return Placement(torch.randint(memory.capacity, (count,), generator=rng))
        slots = torch.arange(filled, filled + count)
        num_replacing = count - (memory.capacity - filled)
        if num_replacing > 0:
            replaced = torch.randint(memory.capacity, (num_replacing,), generator=rng)
            slots[-num_replacing:] = replaced
        return Placement(slots)


def reservoir_admission(
    num_newcomers: int, memory: Memory, rng: torch.Generator
) -> Int64[Tensor, " admitted"]:
    """Admit the t-th example of the stream with probability min(1, M / t)."""
    if memory.seen + num_newcomers <= memory.capacity:
        return torch.arange(num_newcomers)
    # In double precision: 2^-53 is far below any M / t a stream can reach. And as Python numbers:
    # for a batch, five tiny tensor operations cost more.
    drawn = torch.rand(num_newcomers, generator=rng, dtype=torch.float64).tolist()
    order = range(memory.seen + 1, memory.seen + num_newcomers + 1)  # t
    entering = [i for i, t in enumerate(order) if drawn[i] * t < memory.capacity]
    return torch.tensor(entering, dtype=torch.int64)
