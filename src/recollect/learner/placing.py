"""From a storage policy's answer to slots that are really written."""

from dataclasses import dataclass
from typing import Final

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from recollect.learner.batch import Batch
from recollect.memory import Memory
from recollect.storage import Placement


@dataclass(slots=True)
class Written:
    """Who went where, and who made room.

    Attributes:
        slots: Slots that now hold a newcomer, in the order they were first named.
        examples: Which example of the batch each of them holds.
        evicted_labels: Labels of the examples that made room.
        evicted_ages: Their ages, in updates.
        evicted_scores: Their scores, for policies that score.
    """

    slots: Int64[Tensor, " written"]
    examples: Int64[Tensor, " written"]
    evicted_labels: Tensor
    evicted_ages: Int64[Tensor, " evicted"]
    evicted_scores: Float[Tensor, " evicted"]
    _admitted: Int64[Tensor, " written"]  # position among the admitted

    def commit(
        self,
        memory: Memory,
        incoming: Batch,
        placement: Placement,
        increments: Float[Tensor, " admitted"] | None,
    ) -> None:
        """Write the newcomers and what is known of them."""
        if placement.stored_scores is not None:
            memory.score[: len(memory)] = placement.stored_scores
        if not self.slots.numel():
            return
        everybody = self._admitted.shape[0] == placement.slots.shape[0]
        newcomers = incoming.take(self.examples)
        memory.write(
            self.slots,
            newcomers.inputs,
            newcomers.labels,
            arrived_at=memory.seen + 1 + self.examples,
        )
        if increments is not None:
            noted = increments if everybody else increments[self._admitted]
            memory.margin_increment.index_copy_(0, self.slots, noted)
        if placement.scores is not None:
            noted = placement.scores if everybody else placement.scores[self._admitted]
            memory.score.index_copy_(0, self.slots, noted.float())


def written_slots(
    placement: Placement, memory: Memory, admitted: Int64[Tensor, " admitted"]
) -> Written:
    """Check a placement and drop newcomers that a later one of the same batch overwrites."""
    chosen: list[int] = placement.slots.tolist()
    filled, capacity = len(memory), memory.capacity
    last = {slot: position for position, slot in enumerate(chosen) if slot >= 0}
    fresh = [] if memory.is_full else sorted(slot for slot in last if slot >= filled)
    if (
        len(chosen) != admitted.shape[0]
        or not all(-1 <= slot < capacity for slot in chosen)
        or fresh != list(range(filled, filled + len(fresh)))
    ):
        raise ValueError(
            f"the storage policy placed {len(admitted)} newcomers in slots {chosen}; return one "
            f"slot each, from -1 to {capacity - 1}, free slots in order from {filled}."
        )
    for name, expected in (("scores", len(chosen)), ("stored_scores", filled)):
        found: Tensor | None = getattr(placement, name)
        if found is not None and found.shape != (expected,):
            raise ValueError(
                f"the storage policy returned `{name}` of shape {tuple(found.shape)}; return "
                f"{expected} numbers, or None."
            )
    if len(last) == len(chosen):  # nobody was turned away or overwritten
        slots, positions, examples = placement.slots, torch.arange(len(chosen)), admitted
    else:
        slots = torch.tensor(list(last), dtype=torch.int64)
        positions = torch.tensor(list(last.values()), dtype=torch.int64)
        examples = admitted[positions]
    taken = slots if not fresh else slots[slots < filled]
    scores = memory.score if placement.stored_scores is None else placement.stored_scores
    return Written(
        slots,
        examples,
        memory.labels[taken.to(memory.device)],
        memory.ages(taken),
        scores[taken],
        positions,
    )


_NONE: Final = torch.empty(0, dtype=torch.int64)
NOTHING_WRITTEN: Final = Written(_NONE, _NONE, _NONE, _NONE, torch.empty(0), _NONE)
