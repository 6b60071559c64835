import pytest
import torch
from tests.unit.storage.driving import filled_memory
from torch import Tensor

from recollect.memory import Memory
from recollect.retrieval import MaximallyInterfered, Uniform


class TableProbe:
    """Looks losses up in two tables, one entry a slot, and notes which slots were asked for."""

    def __init__(self, before: Tensor, after: Tensor) -> None:
        self.before, self.after = before, after
        self.asked: list[list[int]] = []

    def losses_before(self, slots: Tensor) -> Tensor:
        self.asked.append(slots.tolist())
        return self.before[slots]

    def losses_after(self, slots: Tensor) -> Tensor:
        self.asked.append(slots.tolist())
        return self.after[slots]

    def note(self, column: str, slots: Tensor, values: Tensor) -> None:
        raise AssertionError(f"{column} was not declared: {slots}, {values}")


def random_probe(stored: int, seed: int) -> TableProbe:
    rng = torch.Generator().manual_seed(seed)
    return TableProbe(*torch.rand(2, stored, generator=rng, dtype=torch.float64))


def full_memory(stored: int) -> Memory:
    return filled_memory([0] * stored)


@pytest.mark.parametrize("seed", range(20))
def test_it_replays_the_true_top_of_the_whole_memory_when_all_are_candidates(seed: int) -> None:
    probe = random_probe(30, seed)
    rng = torch.Generator().manual_seed(seed)
    slots = MaximallyInterfered(5, candidates=30).select(full_memory(30), probe, rng)
    rises = (probe.after - probe.before).tolist()
    expected = sorted(range(30), key=lambda slot: rises[slot], reverse=True)[:5]
    assert slots.tolist() == expected


@pytest.mark.parametrize("seed", range(20))
def test_it_replays_the_true_top_of_its_candidates(seed: int) -> None:
    probe = random_probe(100, seed)
    rng = torch.Generator().manual_seed(seed)
    slots = MaximallyInterfered(4, candidates=12).select(full_memory(100), probe, rng)
    asked_before, asked_after = probe.asked
    assert asked_before == asked_after
    assert len(set(asked_before)) == 12
    rises = (probe.after - probe.before).tolist()
    assert slots.tolist() == sorted(asked_before, key=lambda slot: rises[slot], reverse=True)[:4]


def test_it_is_the_rise_that_counts_not_the_loss(rng: torch.Generator) -> None:
    probe = TableProbe(before=torch.tensor([0.0, 5.0, 1.0]), after=torch.tensor([2.0, 6.0, 0.5]))
    slots = MaximallyInterfered(2, candidates=3).select(full_memory(3), probe, rng)
    assert slots.tolist() == [0, 1]


def test_candidates_are_drawn_as_uniform_retrieval_draws() -> None:
    probe = random_probe(100, 0)
    memory = full_memory(100)
    MaximallyInterfered(4, candidates=12).select(memory, probe, torch.Generator().manual_seed(3))
    drawn = Uniform(12).select(memory, probe, torch.Generator().manual_seed(3))
    assert probe.asked[0] == drawn.tolist()


@pytest.mark.parametrize("stored", [1, 4, 5])
def test_a_memory_of_at_most_replay_examples_is_replayed_whole_without_measuring(
    stored: int, rng: torch.Generator
) -> None:
    probe = random_probe(stored, 0)
    slots = MaximallyInterfered(5, candidates=50).select(full_memory(stored), probe, rng)
    assert sorted(slots.tolist()) == list(range(stored))
    assert probe.asked == []


def test_a_memory_smaller_than_the_candidates_gives_its_true_top(rng: torch.Generator) -> None:
    probe = TableProbe(before=torch.zeros(6), after=torch.tensor([1.0, 6.0, 3.0, 5.0, 2.0, 4.0]))
    memory = filled_memory([0] * 6, capacity=20)
    slots = MaximallyInterfered(3, candidates=50).select(memory, probe, rng)
    assert slots.tolist() == [1, 3, 5]


def test_as_many_candidates_as_are_replayed_leave_nothing_to_choose(rng: torch.Generator) -> None:
    probe = random_probe(30, 0)
    slots = MaximallyInterfered(5, candidates=5).select(full_memory(30), probe, rng)
    assert len(set(slots.tolist())) == 5
    assert probe.asked == []


@pytest.mark.parametrize("replay", [0, -1, 2.5, True])
def test_a_replay_that_is_no_whole_number_from_one_is_refused(replay: object) -> None:
    with pytest.raises(ValueError, match=f"`replay` is {replay!r}; pass a whole number from 1"):
        MaximallyInterfered(replay)  # type: ignore[arg-type]


def test_fewer_candidates_than_are_replayed_are_refused() -> None:
    with pytest.raises(ValueError, match="`candidates` is 9, fewer than `replay` = 10; draw at"):
        MaximallyInterfered(10, candidates=9)


@pytest.mark.parametrize("candidates", [20.5, True, "50", None])
def test_candidates_that_are_no_whole_number_are_refused(candidates: object) -> None:
    with pytest.raises(ValueError, match=f"`candidates` is {candidates!r}; pass a whole number"):
        MaximallyInterfered(1, candidates=candidates)  # type: ignore[arg-type]
