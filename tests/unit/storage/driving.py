"""Put a stream through a storage policy without a model, the way the learner does."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from recollect.memory import Memory
from recollect.storage import Placement, Storage


@dataclass
class ChosenEvidence:
    """Answers a storage policy with what the test chose, and notes what was asked."""

    increments: Tensor = field(default_factory=lambda: torch.empty(0))
    each: Tensor = field(default_factory=lambda: torch.empty(0, 0))
    together: Tensor = field(default_factory=lambda: torch.empty(0))
    asked: list[Tensor] = field(default_factory=list)

    def margin_increments(self) -> Tensor:
        return self.increments

    def point_against(self, slots: Tensor) -> bool:
        self.asked.append(slots)
        return bool((self.together < 0).all())

    def cosines(self, slots: Tensor) -> tuple[Tensor, Tensor]:
        self.asked.append(slots)
        return self.each, self.together


def filled_memory(labels: Iterable[int], *, capacity: int | None = None) -> Memory:
    """A memory that holds one example of each label, in order, and has seen nothing else."""
    stored = torch.tensor(list(labels))
    memory = Memory(len(stored) if capacity is None else capacity)
    order = torch.arange(len(stored))
    memory.write(order, torch.zeros(len(stored)), stored, arrived_at=order + 1)
    memory.seen = len(stored)
    return memory


def store(
    storage: Storage,
    memory: Memory,
    labels: Tensor,
    rng: torch.Generator,
    evidence: ChosenEvidence | None = None,
) -> Placement:
    """Let one batch ask for slots, and write what the policy decides; the later of two stays."""
    admitted = storage.admit(labels, memory, rng)
    placement = Placement(torch.empty(0, dtype=torch.int64))
    if len(admitted):
        # A test may choose for more newcomers than are admitted.
        asked = evidence or ChosenEvidence()
        asked = replace(asked, increments=asked.increments[: len(admitted)])
        placement = storage.place(labels[admitted], memory, asked, rng)
        last = {slot: i for i, slot in enumerate(placement.slots.tolist()) if slot >= 0}
        examples = admitted[list(last.values())]
        memory.write(
            torch.tensor(list(last), dtype=torch.int64),
            torch.zeros(len(last)),
            labels[examples],
            arrived_at=memory.seen + 1 + examples,
        )
    memory.seen += len(labels)
    return placement


def chi_square_p_value(observed: Tensor, expected: Tensor, *, factor: float = 1.0) -> float:
    """Chance of counts at least this far from `expected`, cells minus one degrees of freedom."""
    statistic = factor * ((observed.double() - expected) ** 2 / expected).sum()
    freedom = torch.tensor((len(observed) - 1) / 2, dtype=torch.float64)
    return float(torch.special.gammaincc(freedom, statistic / 2))
