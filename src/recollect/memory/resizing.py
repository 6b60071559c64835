"""Go on with a memory of another size."""

from collections.abc import Sequence

import torch
from jaxtyping import Int64
from torch import Tensor

from recollect.memory.memory import Memory


def resized(
    memory: Memory, num_slots: int, rng: torch.Generator, max_bytes: int | None = None
) -> Memory:
    """Return a memory of that size with the same examples, or a uniform sample of them.

    A reservoir's promise holds from there. Of a smaller memory because every stored example stays
    with the same probability M' / M. Into a larger one a newcomer enters with the probability M / t
    that the stored ones have now, and takes a free slot, until it is full: old and new examples are
    then equally likely to be stored, but for the moment at which the memory happens to fill.
    """
    kept = torch.arange(len(memory))
    if len(memory) > num_slots:
        kept = torch.randperm(len(memory), generator=rng)[:num_slots].sort().values
    of_examples = memory.bytes_by_slot()
    if max_bytes is not None:
        kept = _fitting(kept, of_examples, memory.bytes_per_slot, max_bytes, rng)
    new = Memory(num_slots, device=memory.device, max_bytes=max_bytes, codec=memory.codec)
    new.seen, new.clock = memory.seen, memory.clock
    if len(kept):
        inputs, labels = memory.read(kept)
        ids = memory.ids()
        new.write(
            *(torch.arange(len(kept)), inputs, labels),
            arrived_at=memory.arrived_at[kept],
            ids=[ids[slot] for slot in kept.tolist()] if memory.is_named else None,
        )
        new.take_columns_of(memory, kept)
    if len(kept) and max_bytes is not None and new.bytes_over():
        room = max_bytes - sum(new.bytes_by_slot())
        new.fall_to(max(len(kept), room // new.bytes_per_slot))
    if len(kept) < min(len(memory), num_slots):  # for want of bytes
        new.fall_to(max(1, len(kept)))
    if memory.seen > memory.capacity:
        share = min(memory.enters_at_most, memory.capacity / memory.seen)
        new.enters_at_most = share if new.capacity > memory.capacity else 1.0
    return new


def _fitting(
    kept: Int64[Tensor, " kept"],
    sizes: Sequence[int],
    per_slot: int,
    max_bytes: int,
    rng: torch.Generator,
) -> Int64[Tensor, " fitting"]:
    """Leave some out, drawn at random, until the rest fits into a limit."""
    excess = sum(sizes[slot] + per_slot for slot in kept.tolist()) - max_bytes
    if excess <= 0:
        return kept
    leaving = 0
    kept = kept[torch.randperm(len(kept), generator=rng)]
    for slot in kept.tolist():
        if excess <= 0:
            break
        excess -= sizes[slot] + per_slot
        leaving += 1
    return kept[leaving:].sort().values
