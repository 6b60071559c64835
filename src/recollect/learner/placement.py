"""From a storage policy's answer to slots that are really written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from recollect.memory import Memory
from recollect.memory.slot import Id
from recollect.network.batch import WEIGHT, Batch
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
        evicted_ids: Their ids.
    """

    slots: Int64[Tensor, " written"]
    examples: Int64[Tensor, " written"]
    evicted_labels: Tensor
    evicted_ages: Int64[Tensor, " evicted"]
    evicted_scores: Float[Tensor, " evicted"]
    evicted_ids: list[Id]
    _admitted: Int64[Tensor, " written"]  # position among the admitted

    def prepared(
        self,
        memory: Memory,
        incoming: Batch,
        scores: Float[Tensor, " admitted"] | None,
        stored_scores: Float[Tensor, " filled"] | None,
        increments: Float[Tensor, " admitted"] | None,
        kept: Mapping[str, Tensor],
    ) -> Callable[[], None]:
        """Return what writes the newcomers and what is known of them; it may be called again."""

        def of_written(noted: Tensor) -> Tensor:
            everybody = self._admitted.shape[0] == noted.shape[0]
            return (noted if everybody else noted[self._admitted]).float()

        is_writing = self.slots.shape[0] > 0
        newcomers = incoming.take(self.examples).to(memory.device) if is_writing else incoming
        arrived_at = memory.seen + 1 + self.examples
        margins = None if increments is None else of_written(increments)
        scores = None if scores is None else of_written(scores)
        declared = {name: rows[self.examples.to(rows.device)].cpu() for name, rows in kept.items()}
        if newcomers.weights is not None:
            declared[WEIGHT] = newcomers.weights
        ids = None if incoming.ids is None else [incoming.ids[i] for i in self.examples.tolist()]

        def write() -> None:
            if stored_scores is not None:
                memory.score[: stored_scores.shape[0]] = stored_scores
            if not is_writing:
                return
            memory.write(
                *(self.slots, newcomers.inputs, newcomers.labels),
                arrived_at=arrived_at,
                ids=ids,
                declared=declared,
            )
            if margins is not None:
                memory.margin_increment.index_copy_(0, self.slots, margins)
            if scores is not None:
                memory.score.index_copy_(0, self.slots, scores)

        return write


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
        [memory.id_of(slot) for slot in taken.tolist()],
        positions,
    )


_NONE: Final = torch.empty(0, dtype=torch.int64)
NOTHING_WRITTEN: Final = Written(_NONE, _NONE, _NONE, _NONE, torch.empty(0), [], _NONE)
