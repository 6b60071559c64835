"""Go on with a memory of another size."""

import torch

from recollect.memory.memory import Memory


def resized(memory: Memory, num_slots: int, rng: torch.Generator) -> Memory:
    """Return a memory of `num_slots` slots with the same examples, or a uniform sample of them.

    A reservoir's promise holds from there. Of a smaller memory because every stored example stays
    with the same probability M' / M. Into a larger one a newcomer enters with the probability M / t
    that the stored ones have now, and takes a free slot, until it is full: old and new examples are
    then equally likely to be stored, but for the moment at which the memory happens to fill.
    """
    kept = torch.arange(len(memory))
    if len(memory) > num_slots:
        kept = torch.randperm(len(memory), generator=rng)[:num_slots].sort().values
    new = Memory(num_slots, device=memory.device, max_bytes=memory.max_bytes, codec=memory.codec)
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
    if memory.seen > memory.capacity:
        share = min(memory.enters_at_most, memory.capacity / memory.seen)
        new.enters_at_most = share if num_slots > memory.capacity else 1.0
    return new
