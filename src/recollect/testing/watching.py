"""What all checks watch: exceptions, global randomness, and a memory that is only to be read."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import numpy as np
import torch
from torch import Tensor

from recollect.memory import Memory


def fail(who: object, what: str) -> NoReturn:
    """Say which part broke which rule."""
    raise AssertionError(f"{who} {what}")


@contextmanager
def explained(who: object, doing: str) -> Iterator[None]:
    """Turn an exception of a policy into a complaint about it."""
    try:
        yield
    except AssertionError:
        raise
    except Exception as error:
        raise AssertionError(f"{who} raised {type(error).__name__} in {doing}: {error}") from error


@contextmanager
def watched(who: object, doing: str, memory: Memory | None = None) -> Iterator[None]:
    """Let a policy decide: it must not raise, draw from global generators or write."""
    randomness = _global_randomness()
    held = None if memory is None else _contents(memory)
    with explained(who, doing):
        yield
    if _global_randomness() != randomness:
        fail(who, f"drew from a global generator in {doing}; draw from the `rng` it is given.")
    if memory is not None and _contents(memory) != held:
        fail(who, f"changed the memory in {doing}; a policy reads, the learner writes.")


def filled_memory(filled: int, capacity: int, *, seed: int) -> Memory:
    """Build a memory in the middle of a stream, with every column in use."""
    rng = torch.Generator().manual_seed(seed)
    memory = Memory(capacity)
    if filled:
        slots = torch.arange(filled)
        labels = torch.randint(3, (filled,), generator=rng)
        inputs = torch.rand(filled, 2, generator=rng)
        memory.write(slots, inputs, labels, arrived_at=slots + 1)
        memory.stored_at[:filled] = torch.randint(20, (filled,), generator=rng)
        memory.times_replayed[:filled] = torch.randint(9, (filled,), generator=rng)
        memory.margin_increment[:filled] = torch.rand(filled, generator=rng) - 0.5
        memory.score[:filled] = torch.rand(filled, generator=rng)
    memory.clock, memory.seen = 20, filled if filled < capacity else 3 * capacity
    return memory


def check_indices(who: object, answer: object, what: str) -> Tensor:
    """Demand a vector of whole numbers, as torch indexes with them, on the CPU."""
    if (
        not isinstance(answer, Tensor)
        or answer.dtype != torch.int64
        or answer.ndim != 1
        or answer.device.type != "cpu"
    ):
        shown = f"{answer.dtype} {tuple(answer.shape)}" if isinstance(answer, Tensor) else answer
        fail(who, f"returned {shown} for {what}; return a one-dimensional int64 CPU tensor.")
    return answer


def _global_randomness() -> tuple[object, ...]:
    # numpy's legacy state: algorithm, 624 words, position in them, and a spare normal number.
    _, words, *rest = np.random.get_state()  # noqa: NPY002 - only looked at
    of_torch = torch.get_rng_state().numpy().tobytes()
    return of_torch, random.getstate(), np.asarray(words).tobytes(), rest


def _contents(memory: Memory) -> tuple[object, ...]:
    tensors, facts = memory.state()
    listed = [(name, tensor.dtype, tensor.tolist()) for name, tensor in tensors.items()]
    return listed, facts
