"""Hold to a limit in bytes: examples drawn at random make way for those that are written."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from recollect import nested
from recollect.learner.placement import Written
from recollect.memory import Memory
from recollect.network.batch import Batch


def make_it_fit(
    written: Written,
    memory: Memory,
    incoming: Batch,
    stored_scores: Tensor | None,
    rng: torch.Generator,
) -> tuple[Written, Tensor | None, Callable[[], None] | None]:
    """Drop as many examples as it takes, each of those stored and written with the same chance.

    The number of slots falls to what is left, so that a reservoir goes on with that capacity: every
    example of the stream is as likely to be stored as any other of its size.

    Returns:
        What is then written, the scores of what was stored, and what drops the others; that is None
        where everything fits.
    """
    if memory.max_bytes is None or not written.slots.shape[0]:
        return written, stored_scores, None
    slots: list[int] = written.slots.tolist()
    sizes = dict(enumerate(memory.bytes_by_slot()))
    excess = memory.nbytes - memory.max_bytes - sum(sizes.get(slot, 0) for slot in slots)
    newcomers = memory.bytes_of(nested.take(incoming.inputs, written.examples))
    sizes |= zip(slots, newcomers, strict=True)
    excess += sum(newcomers)
    if excess <= 0:
        return written, stored_scores, None
    # What would not fit on its own is turned away, rather than that it empties the memory.
    most = memory.max_bytes - (memory.nbytes - sum(memory.bytes_by_slot()))
    too_large = [slot for slot in slots if sizes[slot] > most]
    gone: set[int] = set()
    for slot in too_large + torch.randperm(len(sizes), generator=rng).tolist():
        if excess <= 0:
            break
        if slot not in gone:
            gone.add(slot)
            excess -= sizes[slot]
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
    return fitting, stored_scores, dropping
