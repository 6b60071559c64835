"""Maximally interfered retrieval."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import torch
from jaxtyping import Int64
from torch import Tensor
from typing_extensions import override

from recollect.memory import Memory
from recollect.ranges import Choice
from recollect.retrieval.retrieval import Probe, Retrieval, check_counts, draw_slots


@final
@dataclass(frozen=True)
class MaximallyInterfered(Retrieval):
    """Replay what learning the incoming batch alone would hurt most (MIR).

    Draws `candidates` slots at random. Of these it replays the `replay` whose losses rise most
    under a virtual step along the incoming gradient, largest rise first.

    References:
        Aljundi et al., Online continual learning with maximally interfered retrieval, NeurIPS 2019,
        Algorithm 1. The score is without the best loss so far: the authors' scripts score CIFAR-10
        and mini-ImageNet so, and compare with the best loss on MNIST (docs/benchmarks.md).
    """

    draws: ClassVar[bool] = False

    replay: int
    candidates: Annotated[int, Choice(20, 50, 100, 200, is_usual=False)] = 50

    def __post_init__(self) -> None:
        check_counts(replay=self.replay, candidates=self.candidates)
        if self.candidates < self.replay:
            raise ValueError(
                f"`candidates` is {self.candidates}, fewer than `replay` = {self.replay}; "
                "draw at least as many candidates as are replayed."
            )

    @override
    def select(
        self, memory: Memory, probe: Probe, rng: torch.Generator
    ) -> Int64[Tensor, " replayed"]:
        slots = draw_slots(memory, self.candidates, rng)
        if len(slots) <= self.replay:  # all will be replayed; nothing to choose
            return slots
        rise = probe.losses_after(slots) - probe.losses_before(slots)
        return slots[rise.topk(self.replay).indices.cpu()]
