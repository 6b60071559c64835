"""Statistical tests draw from fixed seeds and ask for p > 1e-6: a false alarm, should the seeds or
torch's generator change, has one chance in a million a test."""

from itertools import combinations

import pytest
import torch
from tests.unit.storage.driving import (
    ChosenEvidence,
    chi_square_p_value,
    filled_memory,
    store,
)

from recollect.memory import Memory
from recollect.storage import Reservoir


def kept_arrivals(capacity: int, batches: list[int], rng: torch.Generator) -> list[int]:
    """Which arrivals, counted from 0, a reservoir holds after a stream of such batches."""
    memory = Memory(capacity)
    for size in batches:
        store(Reservoir(), memory, torch.zeros(size, dtype=torch.int64), rng)
    assert len(memory) == min(capacity, sum(batches))
    return [arrival - 1 for arrival in memory.arrived_at[: len(memory)].tolist()]


def inclusion_p_value(capacity: int, batches: list[int], *, streams: int, seed: int) -> float:
    length = sum(batches)
    rng = torch.Generator().manual_seed(seed)
    counts = torch.zeros(length)
    for _ in range(streams):
        counts[kept_arrivals(capacity, batches, rng)] += 1
    share = capacity / length
    # Exactly `capacity` are kept of each stream, so inclusions are correlated: with variance
    # p (1 - p) and covariance -p (1 - p) / (n - 1) this factor makes the statistic chi-square.
    factor = (length - 1) / (length * (1 - share))
    expected = torch.full((length,), streams * share, dtype=torch.float64)
    return chi_square_p_value(counts, expected, factor=factor)


@pytest.mark.slow
def test_every_arrival_is_kept_equally_often() -> None:
    # 4000 streams; the batches start in an empty memory, cross its end, and outgrow it.
    assert inclusion_p_value(8, [3, 17, 20], streams=4000, seed=0) > 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("batch_size", "streams"),
    [(1, 400), (7, 1000), (100, 2000)],
)
def test_the_size_of_batches_does_not_change_how_often_an_arrival_is_kept(
    batch_size: int, streams: int
) -> None:
    num_batches = {1: 40, 7: 6, 100: 1}[batch_size]
    assert inclusion_p_value(8, [batch_size] * num_batches, streams=streams, seed=1) > 1e-6


@pytest.mark.parametrize("batches", [[1] * 6, [2] * 3, [1, 5], [6]])
def test_every_set_of_arrivals_is_kept_equally_often(batches: list[int]) -> None:
    # Stronger than inclusion: all 15 pairs out of 6 arrivals, 1500 streams.
    rng = torch.Generator().manual_seed(len(batches))
    cells = {pair: i for i, pair in enumerate(combinations(range(6), 2))}
    counts = torch.zeros(len(cells))
    for _ in range(1500):
        first, second = sorted(kept_arrivals(2, batches, rng))
        counts[cells[first, second]] += 1
    expected = torch.full((15,), 100.0, dtype=torch.float64)
    assert chi_square_p_value(counts, expected) > 1e-6


def test_everything_is_admitted_while_there_is_room(rng: torch.Generator) -> None:
    memory = filled_memory([0, 0], capacity=5)
    assert Reservoir().admit(torch.zeros(3), memory, rng).tolist() == [0, 1, 2]


def test_free_slots_are_taken_in_order(rng: torch.Generator) -> None:
    memory = filled_memory([0, 0], capacity=6)
    placement = Reservoir().place(torch.zeros(3), memory, ChosenEvidence(), rng)
    assert placement.slots.tolist() == [2, 3, 4]


def test_a_batch_that_outgrows_the_memory_fills_it_first(rng: torch.Generator) -> None:
    memory = filled_memory([0, 0], capacity=4)
    slots = Reservoir().place(torch.zeros(9), memory, ChosenEvidence(), rng).slots.tolist()
    assert slots[:2] == [2, 3]
    assert all(0 <= slot < 4 for slot in slots[2:])


@pytest.mark.parametrize("seen", [10, 99, 10_000])
def test_the_next_example_is_admitted_with_probability_capacity_over_its_number(seen: int) -> None:
    # The newcomers of one batch are numbers seen + 1, seen + 2 ...: mean admissions are the sum of
    # 8 / t. Over 2000 batches of 50 the standard score is beyond 5 once in 1.7 million times.
    memory = filled_memory([0] * 8)
    memory.seen = seen
    rng = torch.Generator().manual_seed(seen)
    labels = torch.zeros(50)
    admitted = sum(len(Reservoir().admit(labels, memory, rng)) for _ in range(2000))
    chances = [min(1.0, 8 / t) for t in range(seen + 1, seen + 51)]
    mean = 2000 * sum(chances)
    spread = (2000 * sum(p * (1 - p) for p in chances)) ** 0.5
    assert abs(admitted - mean) < 5 * spread


def test_a_victim_is_any_slot_with_equal_chance(rng: torch.Generator) -> None:
    memory = filled_memory([0] * 5)
    slots = Reservoir().place(torch.zeros(10_000), memory, ChosenEvidence(), rng).slots
    expected = torch.full((5,), 2000.0, dtype=torch.float64)
    assert chi_square_p_value(slots.bincount(minlength=5), expected) > 1e-6


def test_it_keeps_no_state_and_refuses_any() -> None:
    assert Reservoir().state() == {}
    with pytest.raises(ValueError, match=r"Reservoir keeps no state, but got \['seen'\]"):
        Reservoir().restore({"seen": torch.tensor(1)})


def kept_after_deletions(rng: torch.Generator) -> list[int]:
    """Which arrivals, counted from 0, are held at the end if some were deleted on the way."""
    memory = Memory(8)
    for size in (3, 17):
        store(Reservoir(), memory, torch.zeros(size, dtype=torch.int64), rng)
    memory.drop([slot for slot in range(len(memory)) if memory.id_of(slot) in DELETED])
    for size in (1, 6, 13):
        store(Reservoir(), memory, torch.zeros(size, dtype=torch.int64), rng)
    return [arrival - 1 for arrival in memory.arrived_at[: len(memory)].tolist()]


DELETED = (1, 4, 8, 16, 17)  # counted from 1


@pytest.mark.slow
def test_after_deletions_every_other_arrival_is_kept_with_the_same_probability() -> None:
    rng, streams, share = torch.Generator().manual_seed(0), 4000, 8 / 40
    counts = torch.zeros(40)
    for _ in range(streams):
        counts[kept_after_deletions(rng)] += 1
    deleted = torch.tensor(DELETED) - 1
    assert not counts[deleted].any()
    others = torch.tensor([arrival for arrival in range(40) if arrival + 1 not in DELETED])
    z = (counts[others] - streams * share) / (streams * share * (1 - share)) ** 0.5
    # 35 numbers: beyond 5.5 once in 10^6 runs. Freed slots that newcomers took without a draw
    # would leave the 15 old arrivals about 9 % more often, 3 deviations each and 7 in their mean.
    assert float(z.abs().max()) < 5.5
    assert abs(float(z[:15].mean())) * 15**0.5 < 5.5


def test_slots_freed_while_the_memory_was_filling_are_taken_in_order(
    rng: torch.Generator,
) -> None:
    memory = filled_memory([0, 0, 0, 0], capacity=6)
    memory.drop([0, 1])
    placement = Reservoir().place(torch.zeros(2), memory, ChosenEvidence(), rng)
    assert placement.slots.tolist() == [2, 3]
