"""Storage and retrieval as MIR's authors have them. They know segments, as no part of ours may."""

from collections.abc import Callable
from typing import Final

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn.functional import cross_entropy
from typing_extensions import override

from recollect.memory import Memory
from recollect.retrieval import Retrieval
from recollect.retrieval.retrieval import Probe
from recollect.storage import Placement, Storage
from recollect.storage.storage import Evidence


class BatchReservoir(Storage):
    """Draw for a whole batch with the count from before it, so that newcomers enter too often.

    The batch size must divide the capacity: no batch fills the last free slots and asks for more.
    """

    @override
    def place(
        self, labels: Tensor, memory: Memory, evidence: Evidence, rng: torch.Generator
    ) -> Placement:
        if not memory.is_full:
            return Placement(torch.arange(len(memory), len(memory) + len(labels)))
        drawn = torch.randint(memory.seen, (len(labels),), generator=rng)
        return Placement(torch.where(drawn < memory.capacity, drawn, -1))


class OldLogits:
    """Logits noted where a candidate's loss was the lowest so far (`--compare_to_old_logits`).

    As released, a candidate's row is not its slot. It is its place among the slots of earlier
    segments, which differs from the slot as soon as the current segment has one before it.

    Args:
        capacity: Slots of the memory.
        num_classes: Length of a row.
        logits_of: Stored inputs to the model's logits.
    """

    def __init__(
        self, capacity: int, num_classes: int, logits_of: Callable[[object], Tensor]
    ) -> None:
        self._table: Final = torch.zeros(capacity, num_classes)
        self._logits_of: Final = logits_of
        self.num_read = 0
        self.num_misread = 0

    @torch.no_grad()
    def lowest_losses(
        self, memory: Memory, slots: Int64[Tensor, " slots"], rows: Int64[Tensor, " slots"]
    ) -> Float[Tensor, " slots"]:
        """Return the lower of the loss now and that of the noted logits; note what is lower now."""
        self.num_read += len(rows)
        self.num_misread += int((rows != slots).sum())
        inputs, labels = memory.read(slots)
        logits = self._logits_of(inputs)
        now = cross_entropy(logits, labels, reduction="none")
        noted = cross_entropy(self._table[rows], labels, reduction="none")
        lower = now < noted
        self._table[rows[lower]] = logits[lower]
        return torch.minimum(now, noted)


class EarlierSegments(Retrieval):
    """Replay from the second segment on, and nothing that arrived in the current one.

    Args:
        replay: How many slots.
        candidates: How many are scored by maximal interference; None replays at random.
        old_logits: What losses after the virtual step are compared with; None compares with the
            losses before it.
    """

    def __init__(
        self, replay: int, *, candidates: int | None = None, old_logits: OldLogits | None = None
    ) -> None:
        self.replay = replay
        self._candidates: Final = candidates
        self._old_logits: Final = old_logits
        self._last_of_earlier = 0

    def end_segment(self, memory: Memory) -> None:
        """Hear that what has arrived so far is of earlier segments now."""
        self._last_of_earlier = memory.seen

    @override
    def select(
        self, memory: Memory, probe: Probe, rng: torch.Generator
    ) -> Int64[Tensor, " replayed"]:
        earlier = (memory.arrived_at[: len(memory)] <= self._last_of_earlier).nonzero().flatten()
        count = self.replay if self._candidates is None else self._candidates
        rows = torch.randperm(len(earlier), generator=rng)[:count]
        slots = earlier[rows]
        if self._candidates is None or len(slots) <= self.replay:
            return slots
        before = (
            probe.losses_before(slots)
            if self._old_logits is None
            else self._old_logits.lowest_losses(memory, slots, rows)
        )
        rise = probe.losses_after(slots) - before
        return slots[rise.topk(self.replay).indices]
