"""What the authors' algorithm promises. Statistical tests: p > 1e-6, fixed seeds."""

import pytest
import torch
from tests.unit.storage.driving import ChosenEvidence, chi_square_p_value, filled_memory
from torch import Tensor

from recollect.memory import Memory
from recollect.storage import GSSGreedy, Placement


def scored_memory(scores: list[float], *, capacity: int | None = None) -> Memory:
    memory = filled_memory([0] * len(scores), capacity=capacity)
    memory.score[: len(scores)] = torch.tensor(scores)
    return memory


def place(
    memory: Memory, cosines: list[float], *, together: float = -1.0, seed: int = 0
) -> Placement:
    """Place newcomers whose largest cosines are these; `together` is that of their mean."""
    evidence = ChosenEvidence(
        each=torch.tensor(cosines).unsqueeze(1), together=torch.tensor([together])
    )
    rng = torch.Generator().manual_seed(seed)
    return GSSGreedy().place(torch.zeros(len(cosines)), memory, evidence, rng)


def first_slots(memory: Memory, cosine: float, *, draws: int) -> Tensor:
    return torch.cat([place(memory, [cosine], seed=seed).slots for seed in range(draws)])


# --- the fill phase -------------------------------------------------------------------------------


def test_the_first_batch_is_stored_without_asking_for_cosines(rng: torch.Generator) -> None:
    evidence = ChosenEvidence()
    placement = GSSGreedy().place(torch.zeros(3), Memory(5), evidence, rng)
    assert placement.slots.tolist() == [0, 1, 2]
    assert placement.scores is not None
    assert placement.scores.tolist() == pytest.approx([0.1, 0.1, 0.1])
    assert evidence.asked == []


@pytest.mark.parametrize("together", [-0.5, 0.5])
def test_while_there_is_room_newcomers_are_appended_whatever_their_cosines(together: float) -> None:
    placement = place(scored_memory([0.1, 0.1], capacity=5), [0.9, -0.9], together=together)
    assert placement.slots.tolist() == [2, 3]


def test_newcomers_behind_the_last_free_slot_are_turned_away() -> None:
    placement = place(scored_memory([0.1, 0.1], capacity=4), [-0.5] * 5)
    assert placement.slots.tolist() == [2, 3, -1, -1, -1]


def test_a_first_batch_larger_than_the_memory_fills_it_and_no_more(rng: torch.Generator) -> None:
    placement = GSSGreedy().place(torch.zeros(5), Memory(3), ChosenEvidence(), rng)
    assert placement.slots.tolist() == [0, 1, 2, -1, -1]


# --- what is compared -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "shape"), [(1, (1, 1)), (9, (1, 9)), (10, (1, 10)), (25, (2, 10)), (150, (10, 10))]
)
def test_newcomers_are_compared_with_batches_of_distinct_filled_slots(
    stored: int, shape: tuple[int, int], rng: torch.Generator
) -> None:
    evidence = ChosenEvidence(each=torch.zeros(1, shape[0]), together=torch.zeros(shape[0]))
    memory = scored_memory([0.1] * stored, capacity=200)
    GSSGreedy(batches=10, batch_size=10).place(torch.zeros(1), memory, evidence, rng)
    (asked,) = evidence.asked
    assert asked.shape == shape
    assert len(set(asked.flatten().tolist())) == asked.numel()
    assert 0 <= int(asked.min()) <= int(asked.max()) < stored


def test_the_score_of_a_newcomer_is_its_largest_cosine(rng: torch.Generator) -> None:
    each = torch.tensor([[-0.3, 0.2, 0.1], [-0.9, -0.8, -0.7]])
    evidence = ChosenEvidence(each=each, together=torch.tensor([-0.1, -0.2, -0.3]))
    placement = GSSGreedy().place(torch.zeros(2), scored_memory([0.1] * 30), evidence, rng)
    assert placement.scores is not None
    assert placement.scores.tolist() == pytest.approx([0.2, -0.7])


# --- replacement ----------------------------------------------------------------------------------


@pytest.mark.parametrize("together", [0.0, 0.3])
def test_a_batch_that_points_along_the_memory_replaces_nothing(together: float) -> None:
    for seed in range(20):
        placement = place(scored_memory([0.9, 0.9]), [-1.0, -1.0], together=together, seed=seed)
        assert placement.slots.tolist() == [-1, -1]


def test_the_largest_cosine_to_any_batch_decides_whether_anything_happens(
    rng: torch.Generator,
) -> None:
    evidence = ChosenEvidence(each=torch.full((1, 2), -1.0), together=torch.tensor([-0.9, 0.1]))
    placement = GSSGreedy().place(torch.zeros(1), scored_memory([0.9] * 20), evidence, rng)
    assert placement.slots.tolist() == [-1]


def test_victims_are_drawn_in_proportion_to_their_normalised_scores() -> None:
    # A newcomer of cosine -1 weighs (c + 1) / 2 = 0, so whoever is drawn makes room. Normalised
    # scores are (c - min) / (max - min + .01): 0 : .2 : .3 : .5 apart from a common factor.
    slots = first_slots(scored_memory([0.0, 0.2, 0.3, 0.5]), -1.0, draws=1500)
    assert not (slots < 1).any()
    expected = torch.tensor([300.0, 450.0, 750.0], dtype=torch.float64)
    assert chi_square_p_value((slots - 1).bincount(minlength=3), expected) > 1e-6


def test_a_victim_makes_room_with_its_share_of_the_two_scaled_cosines() -> None:
    # Victim .5 and newcomer 0 scale to .75 and .5: replaced with probability .75 / 1.25 = .6.
    slots = first_slots(scored_memory([0.5, 0.5, 0.5]), 0.0, draws=1500)
    replaced = int((slots >= 0).sum())
    observed = torch.tensor([replaced, 1500 - replaced])
    expected = torch.tensor([900.0, 600.0], dtype=torch.float64)
    assert chi_square_p_value(observed, expected) > 1e-6


def test_among_equal_scores_every_slot_is_a_victim_equally_often() -> None:
    # Here the authors' code has only weights of zero to draw from and fails.
    slots = first_slots(scored_memory([0.4] * 4), -1.0, draws=2000)
    expected = torch.full((4,), 500.0, dtype=torch.float64)
    assert chi_square_p_value(slots.bincount(minlength=4), expected) > 1e-6


def test_an_example_opposed_to_the_memory_never_makes_room_for_its_like() -> None:
    # Both scaled cosines are 0: nothing speaks for a replacement.
    assert (first_slots(scored_memory([-1.0, -1.0]), -1.0, draws=20) == -1).all()


def test_the_victims_of_one_batch_are_distinct() -> None:
    memory = scored_memory([0.1, 0.2, 0.3, 0.4, 0.5])
    for seed in range(50):
        slots = place(memory, [-1.0] * 4, seed=seed).slots.tolist()
        assert len(set(slots)) == 4


@pytest.mark.parametrize("scores", [[0.1, 0.2, 0.3], [0.4, 0.4, 0.4]])
def test_of_a_batch_larger_than_the_memory_the_first_few_take_each_slot_once(
    scores: list[float],
) -> None:
    slots = place(scored_memory(scores), [-1.0] * 8).slots.tolist()
    assert sorted(slots[:3]) == [0, 1, 2]
    assert slots[3:] == [-1] * 5


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["batches", "batch_size"])
@pytest.mark.parametrize("value", [0, -2, 1.5, True])
def test_a_count_that_makes_no_sense_is_refused(setting: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"`{setting}` is {value!r}; pass a whole number from 1"):
        GSSGreedy(**{setting: value})  # type: ignore[arg-type]
