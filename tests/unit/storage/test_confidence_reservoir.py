"""Scores and picks of Algorithm 2 worked by hand. Statistical tests: p > 1e-6, fixed seeds."""

import math

import pytest
import torch
from tests.unit.storage.driving import (
    ChosenEvidence,
    chi_square_p_value,
    filled_memory,
    store,
)
from torch import Tensor

from recollect.memory import Memory
from recollect.storage import ConfidenceReservoir, Reservoir

# Clock 9 and stored at updates 0, 5, 8: ages 10, 5, 2. Replayed 4, 1, 1 times: EX = .4, .2, .5.
# MI = .1, 3, -1, and with c = 0.1 the scores S = EX + c MI are .41, .5, .4.
HIGHEST_WITHOUT_MARGINS, HIGHEST_WITH_MARGINS = 2, 1


def scored_memory(*, capacity: int = 3) -> Memory:
    memory = filled_memory([0, 1, 2], capacity=capacity)
    memory.clock = 9
    memory.stored_at[:3] = torch.tensor([0, 5, 8])
    memory.times_replayed[:3] = torch.tensor([4, 1, 1])
    memory.margin_increment[:3] = torch.tensor([0.1, 3.0, -1.0])
    return memory


def memory_with_scores(scores: list[float], labels: list[int] | None = None) -> Memory:
    """A full memory whose replacement scores are these, as margin increments at c = 1."""
    memory = filled_memory(labels if labels is not None else [0] * len(scores))
    memory.margin_increment[:] = torch.tensor(scores)
    return memory


def victims(storage: ConfidenceReservoir, memory: Memory, *, draws: int, seed: int = 0) -> Tensor:
    """Slots chosen by one newcomer at a time, each facing the same memory."""
    rng = torch.Generator().manual_seed(seed)
    evidence = ChosenEvidence(increments=torch.zeros(1))
    label = torch.zeros(1, dtype=torch.int64)
    slots = [storage.place(label, memory, evidence, rng).slots for _ in range(draws)]
    return torch.cat(slots)


def victim_shares_p_value(slots: Tensor, weights: list[float]) -> float:
    expected = torch.tensor(weights, dtype=torch.float64)
    expected = expected / expected.sum() * len(slots)
    return chi_square_p_value(slots.bincount(minlength=len(weights)), expected)


# --- admission ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seen", [0, 5, 50])
@pytest.mark.parametrize("batch", [1, 10, 100])
def test_it_admits_exactly_whom_a_reservoir_admits(seen: int, batch: int) -> None:
    memory = filled_memory([0] * min(seen, 8), capacity=8) if seen else Memory(8)
    memory.seen = seen
    labels = torch.zeros(batch, dtype=torch.int64)
    for seed in range(20):
        ours = ConfidenceReservoir().admit(labels, memory, torch.Generator().manual_seed(seed))
        theirs = Reservoir().admit(labels, memory, torch.Generator().manual_seed(seed))
        assert torch.equal(ours, theirs)


# --- the score ------------------------------------------------------------------------------------


def test_the_score_is_the_exploitation_rate_plus_the_weighted_margin_increment() -> None:
    scores = ConfidenceReservoir(margin_weight=0.1).scores(scored_memory())
    torch.testing.assert_close(scores, torch.tensor([0.41, 0.5, 0.4]))


def test_without_margin_weight_the_score_is_the_exploitation_rate() -> None:
    scores = ConfidenceReservoir(margin_weight=0.0).scores(scored_memory())
    torch.testing.assert_close(scores, torch.tensor([0.4, 0.2, 0.5]))


def test_the_age_offset_is_added_to_every_age() -> None:
    # Ages 10, 5 and 2 become 18, 13 and 10.
    scores = ConfidenceReservoir(margin_weight=0.0, age_offset=8.0).scores(scored_memory())
    torch.testing.assert_close(scores, torch.tensor([4 / 18, 1 / 13, 1 / 10]))


def test_only_filled_slots_have_a_score() -> None:
    assert len(ConfidenceReservoir().scores(scored_memory(capacity=5))) == 3


# --- the picks ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("margin_weight", "victim"), [(0.0, HIGHEST_WITHOUT_MARGINS), (0.1, HIGHEST_WITH_MARGINS)]
)
def test_s1_replaces_the_highest_score(margin_weight: float, victim: int) -> None:
    storage = ConfidenceReservoir(pick="highest", margin_weight=margin_weight)
    assert victims(storage, scored_memory(), draws=5).tolist() == [victim] * 5


def test_s1_replaces_the_first_of_equal_scores() -> None:
    storage = ConfidenceReservoir(pick="highest", margin_weight=1.0)
    assert victims(storage, memory_with_scores([0.1, 0.7, 0.7]), draws=3).tolist() == [1, 1, 1]


def test_s2_replaces_in_proportion_to_the_score() -> None:
    storage = ConfidenceReservoir(pick="proportional", margin_weight=1.0)
    slots = victims(storage, memory_with_scores([0.1, 0.2, 0.3, 0.4]), draws=4000)
    assert victim_shares_p_value(slots, [1, 2, 3, 4]) > 1e-6


def test_s2_never_replaces_a_score_of_zero() -> None:
    storage = ConfidenceReservoir(pick="proportional", margin_weight=1.0)
    slots = victims(storage, memory_with_scores([0.0, 1e-6, 0.0, 0.0]), draws=200)
    assert set(slots.tolist()) == {1}


def test_s2_clamps_negative_scores_at_zero() -> None:
    storage = ConfidenceReservoir(pick="proportional", margin_weight=1.0, negative="clamp")
    slots = victims(storage, memory_with_scores([-0.5, 0.2, 0.3, 0.5]), draws=4000)
    assert not (slots == 0).any()
    assert victim_shares_p_value(slots - 1, [2, 3, 5]) > 1e-6


def test_s2_shifts_scores_by_the_smallest() -> None:
    storage = ConfidenceReservoir(pick="proportional", margin_weight=1.0, negative="shift")
    slots = victims(storage, memory_with_scores([-0.5, 0.2, 0.3, 0.5]), draws=4000)
    assert not (slots == 0).any()
    assert victim_shares_p_value(slots - 1, [7, 8, 10]) > 1e-6


@pytest.mark.parametrize(
    ("negative", "scores"),
    [
        ("clamp", [0.0, 0.0, 0.0]),
        ("clamp", [-0.1, -0.5, 0.0]),
        ("shift", [0.3, 0.3, 0.3]),
        ("shift", [0.0, 0.0, 0.0]),
    ],
)
def test_s2_replaces_any_slot_when_no_score_tells_them_apart(
    negative: str, scores: list[float]
) -> None:
    storage = ConfidenceReservoir(
        pick="proportional",
        margin_weight=1.0,
        negative=negative,  # type: ignore[arg-type]
    )
    slots = victims(storage, memory_with_scores(scores), draws=2000)
    assert victim_shares_p_value(slots, [1, 1, 1]) > 1e-6


# --- a batch, one newcomer after the other --------------------------------------------------------


def placed(storage: ConfidenceReservoir, memory: Memory, increments: list[float]) -> list[int]:
    evidence = ChosenEvidence(increments=torch.tensor(increments))
    labels = torch.zeros(len(increments), dtype=torch.int64)
    rng = torch.Generator().manual_seed(0)
    return storage.place(labels, memory, evidence, rng).slots.tolist()


@pytest.mark.parametrize("margins", ["insertion", "both", "all"])
def test_a_newcomer_is_itself_up_for_replacement_by_those_behind_it(margins: str) -> None:
    # S = .41, .5, .4. The first takes slot 1 and scores 0.1 * 9 = .9, so the second replaces it
    # and scores 0; the third then finds slot 0.
    storage = ConfidenceReservoir(
        pick="highest",
        margin_weight=0.1,
        margins=margins,  # type: ignore[arg-type]
    )
    assert placed(storage, scored_memory(), [9.0, 0.0, 0.0]) == [1, 1, 0]


@pytest.mark.parametrize("margins", ["never", "replay"])
def test_a_newcomer_whose_margin_is_not_measured_scores_zero(margins: str) -> None:
    storage = ConfidenceReservoir(
        pick="highest",
        margin_weight=0.1,
        margins=margins,  # type: ignore[arg-type]
    )
    assert placed(storage, scored_memory(), [9.0, 0.0, 0.0]) == [1, 0, 2]


def test_free_slots_are_taken_in_order_before_anything_is_replaced() -> None:
    # Slots 3 and 4 are free; behind them the highest of .41, .5, .4 and the two newcomers.
    storage = ConfidenceReservoir(pick="highest", margin_weight=0.1)
    assert placed(storage, scored_memory(capacity=5), [0.0, 8.0, 0.0]) == [3, 4, 4]


def test_with_room_for_all_nothing_is_scored() -> None:
    memory = scored_memory(capacity=9)
    placement = ConfidenceReservoir(pick="highest").place(
        torch.zeros(2), memory, ChosenEvidence(), torch.Generator()
    )
    assert placement.slots.tolist() == [3, 4]
    assert placement.stored_scores is None


def test_the_scores_of_the_decision_are_reported() -> None:
    evidence = ChosenEvidence(increments=torch.tensor([9.0, 0.5]))
    labels = torch.zeros(2, dtype=torch.int64)
    storage = ConfidenceReservoir(pick="highest", margin_weight=0.1)
    placement = storage.place(labels, scored_memory(), evidence, torch.Generator())
    torch.testing.assert_close(placement.stored_scores, torch.tensor([0.41, 0.5, 0.4]))
    torch.testing.assert_close(placement.scores, torch.tensor([0.9, 0.05]))


def test_a_batch_far_larger_than_the_memory_stays_inside_it(rng: torch.Generator) -> None:
    memory = Memory(3)
    evidence = ChosenEvidence(increments=torch.rand(50, generator=rng))
    labels = torch.arange(50)
    slots = ConfidenceReservoir(pick="highest").place(labels, memory, evidence, rng).slots
    assert slots[:3].tolist() == [0, 1, 2]
    assert set(slots.tolist()) == {0, 1, 2}


# --- equal storage (note P7) ----------------------------------------------------------------------


def test_within_class_replaces_the_highest_score_of_the_drawn_slots_class() -> None:
    memory = memory_with_scores([0.1, 0.3, 0.2, 0.0, 0.9, 0.8], labels=[0, 0, 0, 1, 2, 2])
    storage = ConfidenceReservoir(pick="highest", margin_weight=1.0, within_class=True)
    slots = victims(storage, memory, draws=3000)
    assert set(slots.tolist()) == {1, 3, 4}
    shares = slots.bincount(minlength=6)[[1, 3, 4]]
    expected = torch.tensor([1500.0, 500.0, 1000.0], dtype=torch.float64)
    assert chi_square_p_value(shares, expected) > 1e-6


def test_within_class_sees_the_classes_of_newcomers_already_placed() -> None:
    # The first newcomer, of class 1, takes slot 0. The second draws slot 0 (class 1: slot 0) or
    # slot 1 (class 0: slot 1) with equal chance; were slot 0 still of class 0, the newcomer's
    # score of 0 would lose to 0.1 every time. 200 fair draws leave 50..150 with p < 1e-11.
    memory = memory_with_scores([0.5, 0.1])
    storage = ConfidenceReservoir(pick="highest", margin_weight=1.0, within_class=True)
    rng = torch.Generator().manual_seed(0)
    evidence = ChosenEvidence(increments=torch.zeros(2))
    slots = torch.stack(
        [storage.place(torch.tensor([1, 1]), memory, evidence, rng).slots for _ in range(200)]
    )
    assert (slots[:, 0] == 0).all()
    assert 50 < int((slots[:, 1] == 0).sum()) < 150


@pytest.mark.slow
def test_within_class_keeps_the_class_counts_of_a_reservoir(rng: torch.Generator) -> None:
    # Of 20 examples of class 0 and then 20 of class 1, a reservoir of 8 holds a hypergeometric
    # number of class 0. Here with replays, ages and increments that make scores differ. 1000
    # streams; cells of at least 5 expected.
    storage = ConfidenceReservoir(pick="highest", within_class=True, margin_weight=1.0)
    labels = torch.tensor([0] * 20 + [1] * 20)
    counts = torch.zeros(9)
    for _ in range(1000):
        memory = Memory(8)
        for batch in labels.split_with_sizes([5, 15, 15, 5]):
            evidence = ChosenEvidence(increments=torch.rand(8 + len(batch), generator=rng))
            store(storage, memory, batch, rng, evidence)
            memory.clock += 1
            memory.mark_replayed(torch.randint(len(memory), (3,), generator=rng))
        counts[memory.counts_by_class().get(0, 0)] += 1
    pmf = [math.comb(20, k) * math.comb(20, 8 - k) / math.comb(40, 8) for k in range(9)]
    expected = 1000 * torch.tensor(pmf, dtype=torch.float64)
    pooled = torch.stack((counts[:2].sum(), *counts[2:7], counts[7:].sum()))
    pooled_expected = torch.stack((expected[:2].sum(), *expected[2:7], expected[7:].sum()))
    assert pooled_expected.min() > 5
    assert chi_square_p_value(pooled, pooled_expected) > 1e-6


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "value", "advice"),
    [
        ("pick", "lowest", "choose one of 'highest', 'proportional'"),
        ("margins", "sometimes", "choose one of 'never', 'insertion', 'replay', 'both', 'all'"),
        ("negative", "abs", "choose one of 'clamp', 'shift'"),
        ("margin_weight", math.nan, "pass a finite number"),
        ("margin_weight", math.inf, "pass a finite number"),
        ("age_offset", -1.0, "pass a number, 0 or above"),
        ("age_offset", math.inf, "pass a number, 0 or above"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_by_name_and_value(
    setting: str, value: object, advice: str
) -> None:
    with pytest.raises(ValueError, match=f"`{setting}` is {value!r}; {advice}"):
        ConfidenceReservoir(**{setting: value})  # type: ignore[arg-type]


# --- large memories -------------------------------------------------------------------------------


@pytest.fixture
def any_memory_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.storage.confidence_reservoir.LARGE", 1)


@pytest.mark.usefixtures("any_memory_is_large")
@pytest.mark.parametrize("scale", [0.5, 0.01, 1e-5])  # the last is beyond what proposals find
def test_a_large_memory_is_drawn_from_in_proportion_to_scores_too(scale: float) -> None:
    storage = ConfidenceReservoir(pick="proportional", margin_weight=scale, margins="insertion")
    slots = victims(storage, memory_with_scores([0.1, 0.4, 0.3, 0.0, -0.5]), draws=3000)
    assert set(slots.tolist()) == {0, 1, 2}
    assert victim_shares_p_value(slots, [0.1, 0.4, 0.3]) > 1e-6


@pytest.mark.usefixtures("any_memory_is_large")
def test_in_a_large_memory_newcomers_of_one_batch_can_replace_each_other() -> None:
    """The first takes slot i and brings its own weight; the second faces what is there then."""
    stored, arriving = [0.2, 0.6, 0.2], [0.9, 0.1]
    storage = ConfidenceReservoir(pick="proportional", margin_weight=1.0)
    evidence = ChosenEvidence(increments=torch.tensor(arriving))
    rng, labels = torch.Generator().manual_seed(0), torch.zeros(2, dtype=torch.int64)
    found = torch.zeros(3, 3)
    for _ in range(4000):
        first, second = storage.place(
            labels, memory_with_scores(stored), evidence, rng
        ).slots.tolist()
        found[first, second] += 1
    expected = torch.zeros(3, 3, dtype=torch.float64)
    for first in range(3):
        then = torch.tensor(stored, dtype=torch.float64)
        share = then[first] / then.sum()
        then[first] = arriving[0]
        expected[first] = share * then / then.sum() * 4000
    assert chi_square_p_value(found.flatten().long(), expected.flatten()) > 1e-6


def test_a_small_memory_is_drawn_from_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> list[int]:
        raise AssertionError("proposals are for large memories")

    monkeypatch.setattr("recollect.storage.confidence_reservoir.draw_by_proposals", refuse)
    victims(ConfidenceReservoir(pick="proportional"), memory_with_scores([0.5, 0.5]), draws=3)
