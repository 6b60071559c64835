"""Hold to a limit in bytes: examples drawn at random make way for those that are written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import ceil

import torch
from torch import Tensor

from recollect import nested
from recollect.learner.placement import Written
from recollect.memory import Memory
from recollect.network.batch import Batch


@dataclass(frozen=True, slots=True)
class Fit:
    """What is written once it fits, and what must be done for that.

    Attributes:
        written: Who goes where.
        stored_scores: The scores of what stays.
        dropping: Frees slots, before anything is written; None if nothing makes way.
        falling: Gives up slots, when everything is written; None if all are kept.
    """

    written: Written
    stored_scores: Tensor | None
    dropping: Callable[[], None] | None = None
    falling: Callable[[], None] | None = None


def make_it_fit(
    written: Written,
    memory: Memory,
    incoming: Batch,
    stored_scores: Tensor | None,
    rng: torch.Generator,
) -> Fit:
    """Give up as many slots as it takes, each with the same chance, and what they hold.

    A reservoir goes on with the slots that are left: every example of the stream is as likely to be
    stored as any other of its size. Slots that wait for later examples are given up first.
    """
    limit = memory.max_bytes
    if limit is None or not (written.slots.shape[0] or memory.bytes_over()):
        return Fit(written, stored_scores)
    written, newcomers = _that_would_fit_alone(written, memory, incoming, limit)
    sizes = dict(enumerate(memory.bytes_by_slot()))
    sizes |= zip(written.slots.tolist(), newcomers, strict=True)
    excess = sum(sizes.values()) + memory.capacity * memory.bytes_per_slot - limit
    if excess <= 0:
        return Fit(written, stored_scores)
    waiting = _waiting(memory, len(sizes), memory.seen + len(incoming))
    spared = _spared(memory, sizes, excess, waiting)
    excess -= spared * memory.bytes_per_slot
    given_up: set[int] = set()
    for slot in torch.randperm(memory.capacity - waiting, generator=rng).tolist():
        if excess <= 0:
            break
        given_up.add(slot)
        excess -= memory.bytes_per_slot + sizes.get(slot, 0)
    falling = partial(memory.fall_to, max(1, memory.capacity - spared - len(given_up)))
    if gone := {slot for slot in given_up if slot in sizes}:
        return replace(_without(gone, written, memory, stored_scores), falling=falling)
    return Fit(written, stored_scores, falling=falling)


def _waiting(memory: Memory, num_held: int, num_seen: int) -> int:
    """Count the slots that no example of the stream so far was ever to have."""
    is_growing = memory.enters_at_most < 1
    return max(0, memory.capacity - (num_held if is_growing else max(num_held, num_seen)))


def _spared(memory: Memory, sizes: Mapping[int, int], excess: int, waiting: int) -> int:
    """Count the waiting slots to give up: more than must be at once, and not one by one."""
    assert memory.max_bytes is not None
    of_one = memory.bytes_per_slot + ceil(sum(sizes.values()) / max(1, len(sizes)))
    likely = memory.capacity - memory.max_bytes // of_one  # with examples like these
    return min(waiting, max(ceil(excess / memory.bytes_per_slot), likely // 2))


def _that_would_fit_alone(
    written: Written, memory: Memory, incoming: Batch, limit: int
) -> tuple[Written, list[int]]:
    """Turn those away that would not fit into an empty memory; return the others' bytes as well."""
    if not written.slots.shape[0]:
        return written, []
    sizes = memory.bytes_of(nested.take(incoming.inputs, written.examples))
    most, filled = limit - memory.bytes_per_slot, len(memory)
    kept = [position for position, size in enumerate(sizes) if size <= most]
    if len(kept) == len(sizes):
        return written, sizes
    slots: list[int] = written.slots.tolist()
    replacing = [position for position, slot in enumerate(slots) if slot < filled]
    making_room = [i for i, position in enumerate(replacing) if sizes[position] <= most]
    free = iter(range(filled, memory.capacity))
    targets = [slots[p] if slots[p] < filled else next(free) for p in kept]
    return replace(
        written,
        slots=torch.tensor(targets, dtype=torch.int64),
        examples=written.examples[kept],
        evicted_labels=written.evicted_labels[making_room],
        evicted_ages=written.evicted_ages[making_room],
        evicted_scores=written.evicted_scores[making_room],
        evicted_ids=[written.evicted_ids[i] for i in making_room],
        _admitted=written._admitted[kept],
    ), [sizes[position] for position in kept]


def _without(gone: set[int], written: Written, memory: Memory, stored_scores: Tensor | None) -> Fit:
    """Drop what is in some slots, or was to be written there; others move into the holes."""
    slots: list[int] = written.slots.tolist()
    filled = len(memory)
    dropping, moved = memory.prepared_drop(slot for slot in gone if slot < filled)
    left = filled - sum(slot < filled for slot in gone)
    kept = [position for position, slot in enumerate(slots) if slot not in gone]
    targets, fresh = [], left
    for position in kept:
        slot = slots[position]
        if slot >= filled:
            targets.append(fresh)
            fresh += 1
        else:
            targets.append(moved.get(slot, slot))
    stored = [slot for slot in sorted(gone - set(slots)) if slot < filled]
    chosen = torch.tensor(kept, dtype=torch.int64)
    fitting = replace(
        written,
        slots=torch.tensor(targets, dtype=torch.int64),
        examples=written.examples[chosen],
        evicted_labels=torch.cat((written.evicted_labels, memory.labels[stored])),
        evicted_ages=torch.cat((written.evicted_ages, memory.ages(torch.tensor(stored).long()))),
        evicted_scores=torch.cat((written.evicted_scores, memory.score[stored])),
        evicted_ids=written.evicted_ids + [memory.id_of(slot) for slot in stored],
        _admitted=written._admitted[chosen],
    )
    if stored_scores is not None:
        source = {target: origin for origin, target in moved.items()}
        stored_scores = stored_scores[[source.get(slot, slot) for slot in range(left)]]
    return Fit(fitting, stored_scores, dropping)
