"""Maximally interfered retrieval."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final, final, get_args

import torch
from jaxtyping import Int64
from torch import Tensor
from typing_extensions import override

from recollect.choices import Beside
from recollect.memory import Memory, MemoryColumn
from recollect.ranges import Choice
from recollect.retrieval.retrieval import Probe, Retrieval, check_counts, draw_slots

_BEST: Final = MemoryColumn("best_loss", default=torch.finfo(torch.float32).max)  # of none so far


@final
@dataclass(frozen=True)
class MaximallyInterfered(Retrieval):
    """Replay what learning the incoming batch alone would hurt most (MIR).

    Draws `candidates` slots at random. Of these it replays the `replay` whose losses rise most
    under a virtual step along the incoming gradient, largest rise first.

    Args:
        replay: Slots to replay.
        candidates: Slots to choose from.
        beside: What the loss after the virtual step is compared with: `"now"`, the loss before it,
            or `"best"`, the smaller of that and the best loss so far, so that what was forgotten
            already counts as well. The best loss is a column of the memory. It is the smallest that
            an example had whenever it was a candidate.

    References:
        Aljundi et al., Online continual learning with maximally interfered retrieval, NeurIPS 2019,
        Algorithm 1 and Sec. 3.1. The authors' scripts score CIFAR-10 and mini-ImageNet with the
        loss before the step, and MNIST with the best loss (docs/benchmarks.md).
    """

    draws: ClassVar[bool] = False

    replay: int
    candidates: Annotated[int, Choice(20, 50, 100, 200, is_usual=False)] = 50
    beside: Annotated[Beside, Choice("now", "best", is_usual=False)] = field(
        default="now", metadata={"later": True}
    )

    def __post_init__(self) -> None:
        check_counts(replay=self.replay, candidates=self.candidates)
        if self.candidates < self.replay:
            raise ValueError(
                f"`candidates` is {self.candidates}, fewer than `replay` = {self.replay}; "
                "draw at least as many candidates as are replayed."
            )
        if self.beside not in get_args(Beside):
            choices = " or ".join(map(repr, get_args(Beside)))
            raise ValueError(f"`beside` is {self.beside!r}; choose {choices}.")

    @property
    @override
    def columns(self) -> tuple[MemoryColumn, ...]:
        return (_BEST,) if self.beside == "best" else ()

    @override
    def select(
        self, memory: Memory, probe: Probe, rng: torch.Generator
    ) -> Int64[Tensor, " replayed"]:
        slots = draw_slots(memory, self.candidates, rng)
        if len(slots) <= self.replay:  # all will be replayed; nothing to choose
            return slots
        after, before = probe.losses_after(slots), probe.losses_before(slots)
        if self.beside == "best":
            best = memory.declared(_BEST.name, slots)
            if best is not None:  # none of a memory that nothing was stored in for this policy
                before = torch.minimum(before, best.to(before))
                probe.note(_BEST.name, slots, before)
        rise = after - before
        return slots[rise.topk(self.replay).indices.cpu()]
