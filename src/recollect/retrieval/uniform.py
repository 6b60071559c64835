"""Replay at random."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Int64
from torch import Tensor
from typing_extensions import override

from recollect.memory import Memory
from recollect.retrieval.retrieval import Probe, Retrieval, check_counts, draw_slots


@final
@dataclass(frozen=True)
class Uniform(Retrieval):
    """Replay `replay` slots drawn at random without replacement (experience replay)."""

    draws: ClassVar[bool] = False

    replay: int

    def __post_init__(self) -> None:
        check_counts(replay=self.replay)

    @override
    def select(
        self, memory: Memory, probe: Probe, rng: torch.Generator
    ) -> Int64[Tensor, " replayed"]:
        return draw_slots(memory, self.replay, rng)
