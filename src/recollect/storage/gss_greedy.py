"""Gradient-based sample selection, the greedy variant."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from typing_extensions import override

from recollect.memory import Memory
from recollect.ranges import Whole
from recollect.storage.storage import Evidence, Placement, Storage

_SCORE_OF_THE_FIRST = 0.1  # nothing to compare with yet; as in the authors' code
_SPREAD_FLOOR = 0.01  # likewise


@final
@dataclass(frozen=True)
class GSSGreedy(Storage):
    """Keep examples whose gradients point in different directions (GSS-greedy).

    An example's score is its largest cosine to the gradients of a few random batches from memory.
    While there is room newcomers are appended. Then a batch is considered only if its own largest
    cosine is below zero: victims are drawn in proportion to their normalised scores, and a victim
    makes room with probability c_victim / (c_victim + c_newcomer), cosines mapped to [0, 1].

    Args:
        batches: Random memory batches to compare with.
        batch_size: Examples in each.

    References:
        Aljundi et al., Gradient based sample selection for online continual learning, NeurIPS 2019,
        Algorithm 2, and the authors' code.
    """

    draws: ClassVar[bool] = False
    score_range: ClassVar[tuple[float, float]] = (-1.001, 1.001)  # cosines, but for rounding

    batches: Annotated[int, Whole(1, 20, is_usual=False)] = 10
    batch_size: Annotated[int, Whole(1, 20, is_usual=False)] = 10

    def __post_init__(self) -> None:
        for name in ("batches", "batch_size"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"`{name}` is {value!r}; pass a whole number from 1.")

    @override
    def place(
        self, labels: Tensor, memory: Memory, evidence: Evidence, rng: torch.Generator
    ) -> Placement:
        count = len(labels)
        slots = torch.full((count,), -1)
        if memory.is_empty:
            scores = torch.full((count,), _SCORE_OF_THE_FIRST)
        else:
            batches = self._memory_batches(memory, rng)
            if memory.is_full and not evidence.point_against(batches):
                return Placement(slots)
            scores = evidence.cosines(batches)[0].amax(1)
        if memory.is_full:
            return Placement(self._replacements(scores, memory, rng), scores=scores)
        num_free = min(count, memory.capacity - len(memory))
        slots[:num_free] = torch.arange(len(memory), len(memory) + num_free)
        return Placement(slots, scores=scores)

    def _memory_batches(
        self, memory: Memory, rng: torch.Generator
    ) -> Int64[Tensor, "batches size"]:
        size = min(self.batch_size, len(memory))
        number = min(self.batches, len(memory) // size)
        return torch.randperm(len(memory), generator=rng)[: number * size].reshape(number, size)

    def _replacements(
        self, scores: Float[Tensor, " newcomers"], memory: Memory, rng: torch.Generator
    ) -> Int64[Tensor, " newcomers"]:
        slots = torch.full((len(scores),), -1)
        count = min(len(scores), memory.capacity)
        victims = self._victims(memory.score, count, rng)
        of_victims, of_newcomers = (memory.score[victims] + 1) / 2, (scores[:count] + 1) / 2
        drawn = torch.rand(count, generator=rng)
        replaced = drawn * (of_victims + of_newcomers) < of_victims
        slots[:count] = torch.where(replaced, victims, -1)
        return slots

    def _victims(self, scores: Tensor, count: int, rng: torch.Generator) -> Int64[Tensor, " count"]:
        normalised = (scores - scores.min()) / (scores.max() - scores.min() + _SPREAD_FLOOR)
        # The authors' code fails when fewer than `count` scores differ from the smallest. A weight
        # far below any real one makes the rest be drawn evenly, and only after the others.
        return torch.multinomial(normalised + 1e-9, count, generator=rng)
