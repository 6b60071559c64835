"""What holds for storage policies whatever the stream: streams are drawn."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from recollect.memory import Memory
from recollect.storage import ClassBalanced, ConfidenceReservoir, GSSGreedy, Reservoir, Storage

POLICIES: dict[str, Callable[[], Storage]] = {
    "reservoir": Reservoir,
    "confidence, highest": ConfidenceReservoir,
    "confidence, proportional": lambda: ConfidenceReservoir(pick="proportional"),
    "confidence, within class": lambda: ConfidenceReservoir(within_class=True),
    "gss": lambda: GSSGreedy(batches=2, batch_size=3),
    "class balanced": ClassBalanced,
}
each_policy = pytest.mark.parametrize("build", POLICIES.values(), ids=POLICIES)

streams = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=12), min_size=1, max_size=6)
capacities = st.integers(1, 9)
seeds = st.integers(0, 2**32)


class DrawnEvidence:
    """Measurements drawn at random, from a generator of their own."""

    def __init__(self, num_newcomers: int, rng: torch.Generator) -> None:
        self.num_newcomers, self.rng = num_newcomers, rng

    def margin_increments(self) -> Tensor:
        return torch.rand(self.num_newcomers, generator=self.rng) - 0.5

    def point_against(self, slots: Tensor) -> bool:
        return bool((self.cosines(slots)[1] < 0).all())

    def cosines(self, slots: Tensor) -> tuple[Tensor, Tensor]:
        each = 2 * torch.rand(self.num_newcomers, len(slots), generator=self.rng) - 1
        return each, 2 * torch.rand(len(slots), generator=self.rng) - 1


def run(
    storage: Storage, capacity: int, stream: list[list[int]], seed: int
) -> tuple[Memory, list[int]]:
    """Put a stream through; return the memory and how full it was after every batch."""
    rng, measured = (torch.Generator().manual_seed(seed + i) for i in range(2))
    memory, filled = Memory(capacity), []
    for batch in stream:
        labels = torch.tensor(batch)
        admitted = storage.admit(labels, memory, rng)
        if len(admitted):
            evidence = DrawnEvidence(len(admitted), measured)
            placement = storage.place(labels[admitted], memory, evidence, rng)
            last = {slot: i for i, slot in enumerate(placement.slots.tolist()) if slot >= 0}
            examples = admitted[list(last.values())]
            slots = torch.tensor(list(last), dtype=torch.int64)
            memory.write(
                slots, labels[examples], labels[examples], arrived_at=memory.seen + 1 + examples
            )
            if placement.scores is not None:
                memory.score[slots] = placement.scores[list(last.values())]
        memory.seen += len(batch)
        memory.clock += 1
        filled.append(len(memory))
    return memory, filled


@each_policy
@settings(max_examples=25)
@given(capacity=capacities, stream=streams, seed=seeds)
def test_every_slot_holds_an_example_of_the_stream_and_none_twice(
    build: Callable[[], Storage], capacity: int, stream: list[list[int]], seed: int
) -> None:
    memory, _ = run(build(), capacity, stream, seed)
    arrivals = memory.arrived_at[: len(memory)].tolist()
    everything = [label for batch in stream for label in batch]
    assert len(set(arrivals)) == len(arrivals)
    assert memory.labels[: len(memory)].tolist() == [everything[i - 1] for i in arrivals]


@each_policy
@settings(max_examples=25)
@given(capacity=capacities, stream=streams, seed=seeds)
def test_a_memory_fills_as_fast_as_the_stream_allows_and_never_empties(
    build: Callable[[], Storage], capacity: int, stream: list[list[int]], seed: int
) -> None:
    _, filled = run(build(), capacity, stream, seed)
    seen = torch.tensor([len(batch) for batch in stream]).cumsum(0)
    assert filled == seen.clamp_max(capacity).tolist()


@each_policy
@settings(max_examples=10)
@given(capacity=capacities, stream=streams, seed=seeds)
def test_the_same_seed_stores_the_same_examples(
    build: Callable[[], Storage], capacity: int, stream: list[list[int]], seed: int
) -> None:
    first, _ = run(build(), capacity, stream, seed)
    second, _ = run(build(), capacity, stream, seed)
    assert torch.equal(first.arrived_at, second.arrived_at)


@settings(max_examples=25)
@given(capacity=capacities, stream=streams, seed=seeds)
def test_class_balanced_storage_keeps_every_class_it_has_met_if_there_is_room(
    capacity: int, stream: list[list[int]], seed: int
) -> None:
    memory, _ = run(ClassBalanced(), capacity, stream, seed)
    met = {label for batch in stream for label in batch}
    if len(met) <= capacity:
        assert set(memory.counts_by_class()) == met
