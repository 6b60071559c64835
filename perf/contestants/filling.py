"""Bring a memory into the state of a long stream at once, instead of streaming there."""

import torch

from perf.contestants.bare import BareER
from perf.contestants.shapes import Shape
from recollect.learner import Learner
from recollect.memory import Memory

_CHUNK = 10_000


def fill_bare(bare: BareER, shape: Shape) -> None:
    """Fill every slot."""
    rng = torch.Generator().manual_seed(1)
    bare.inputs = shape.inputs(bare.capacity, rng)
    bare.labels = shape.labels(bare.capacity, rng)
    bare.filled = bare.seen = bare.capacity


def fill_learner(learner: Learner, shape: Shape) -> None:
    """Fill every slot, and give the columns the variety they have in a stream.

    By way of the memory's saved state, so that whatever is kept beside the columns is right too.
    """
    assert learner.memory is not None
    rng = torch.Generator().manual_seed(1)
    filled, capacity = Memory(learner.memory.capacity), learner.memory.capacity
    for start in range(0, capacity, _CHUNK):
        slots = torch.arange(start, min(start + _CHUNK, capacity))
        count = len(slots)
        filled.write(slots, shape.inputs(count, rng), shape.labels(count, rng), arrived_at=1)
    tensors, facts = filled.state()
    tensors["arrived_at"] = torch.arange(1, capacity + 1)
    tensors["times_replayed"] = torch.randint(1, 20, (capacity,), generator=rng)
    tensors["margin_increment"] = (torch.randn(capacity, generator=rng) / 3).clamp(-1, 1)
    tensors["score"] = torch.rand(capacity, generator=rng) * 2 - 1
    facts |= {"seen": capacity, "clock": 100}
    learner.memory.take_over(Memory.from_state(tensors, facts))
