"""Statistical tests: p > 1e-6, fixed seeds."""

from itertools import combinations

import pytest
import torch
from tests.unit.storage.driving import chi_square_p_value, filled_memory
from torch import Tensor

from recollect.memory import Memory
from recollect.retrieval import Uniform


class SilentProbe:
    """A probe that nobody should ask."""

    def losses_before(self, slots: Tensor) -> Tensor:
        raise AssertionError(f"uniform retrieval asked for the losses of {slots}")

    def losses_after(self, slots: Tensor) -> Tensor:
        raise AssertionError(f"uniform retrieval asked for the losses of {slots}")

    def note(self, column: str, slots: Tensor, values: Tensor) -> None:
        raise AssertionError(f"{column} was not declared: {slots}, {values}")


def select(memory: Memory, replay: int, rng: torch.Generator) -> list[int]:
    return Uniform(replay).select(memory, SilentProbe(), rng).tolist()


# Few slots are drawn through a permutation, few out of many by drawing until all differ.
@pytest.mark.parametrize(("stored", "replay"), [(10, 10), (10, 4), (100, 10), (400, 5), (7, 1)])
def test_slots_are_distinct_filled_and_as_many_as_asked_for(
    stored: int, replay: int, rng: torch.Generator
) -> None:
    memory = filled_memory([0] * stored, capacity=500)
    for _ in range(50):
        slots = select(memory, replay, rng)
        assert len(set(slots)) == len(slots) == replay
        assert all(0 <= slot < stored for slot in slots)


@pytest.mark.parametrize("stored", [1, 3, 9])
def test_a_memory_that_holds_fewer_is_replayed_whole(stored: int, rng: torch.Generator) -> None:
    memory = filled_memory([0] * stored, capacity=20)
    assert sorted(select(memory, 10, rng)) == list(range(stored))


@pytest.mark.parametrize(("stored", "replay"), [(4, 2), (5, 2), (6, 2), (6, 4)])
def test_every_set_of_slots_is_drawn_equally_often(stored: int, replay: int) -> None:
    # (5, 2) and (6, 2) are drawn until all differ, (4, 2) on the border, (6, 4) by permutation.
    rng = torch.Generator().manual_seed(stored + replay)
    memory = filled_memory([0] * stored, capacity=10)
    cells = {chosen: i for i, chosen in enumerate(combinations(range(stored), replay))}
    counts = torch.zeros(len(cells))
    for _ in range(200 * len(cells)):
        counts[cells[tuple(sorted(select(memory, replay, rng)))]] += 1
    expected = torch.full((len(cells),), 200.0, dtype=torch.float64)
    assert chi_square_p_value(counts, expected) > 1e-6


def test_every_slot_is_replayed_equally_often(rng: torch.Generator) -> None:
    # 10 of 50, 3000 times; the factor accounts for drawing without replacement.
    memory = filled_memory([0] * 50)
    slots = torch.tensor([select(memory, 10, rng) for _ in range(3000)])
    expected = torch.full((50,), 600.0, dtype=torch.float64)
    factor = 49 / (50 * (1 - 10 / 50))
    assert (
        chi_square_p_value(slots.flatten().bincount(minlength=50), expected, factor=factor) > 1e-6
    )


@pytest.mark.parametrize("replay", [0, -1, 2.5, True, "3", None])
def test_a_replay_that_is_no_whole_number_from_one_is_refused(replay: object) -> None:
    with pytest.raises(ValueError, match=f"`replay` is {replay!r}; pass a whole number from 1"):
        Uniform(replay)  # type: ignore[arg-type]
