"""CBRS against a slow transcription of Algorithm 1. Statistical tests: p > 1e-6, fixed seeds."""

import pytest
import torch
from tests.unit.storage.driving import ChosenEvidence, chi_square_p_value, store

from recollect.memory import Memory
from recollect.storage import ClassBalanced


def algorithm_1(stream: list[int], capacity: int, rng: torch.Generator) -> list[int]:
    """Line by line; returns the arrival, counted from 1, in each slot.

    A class is full once it is, or was, a largest class of a filled memory.
    """
    memory: list[tuple[int, int]] = []  # (arrival, class)
    full: set[int] = set()
    encountered: dict[int, int] = {}

    def stored(cls: int) -> int:
        return sum(1 for _, held in memory if held == cls)

    def any_of(classes: set[int]) -> int:
        slots = [slot for slot, (_, held) in enumerate(memory) if held in classes]
        return slots[int(torch.randint(len(slots), (), generator=rng))]

    for arrival, cls in enumerate(stream, start=1):
        encountered[cls] = encountered.get(cls, 0) + 1
        if len(memory) < capacity:
            memory.append((arrival, cls))
            continue
        classes = {held for _, held in memory}
        most = max(stored(held) for held in classes)
        largest = {held for held in classes if stored(held) == most}
        full |= largest
        if cls not in full:
            memory[any_of(largest)] = (arrival, cls)
        else:
            drawn = float(torch.rand(1, generator=rng, dtype=torch.float64))
            if drawn <= stored(cls) / encountered[cls]:
                memory[any_of({cls})] = (arrival, cls)
    return [arrival for arrival, _ in memory]


def after(stream: list[int], capacity: int, batch_size: int, rng: torch.Generator) -> Memory:
    storage, memory = ClassBalanced(), Memory(capacity)
    for start in range(0, len(stream), batch_size):
        store(storage, memory, torch.tensor(stream[start : start + batch_size]), rng)
    return memory


IMBALANCED = [0] * 30 + [1] * 4 + [2] * 15 + [3]


def shuffled(stream: list[int], seed: int) -> list[int]:
    order = torch.randperm(len(stream), generator=torch.Generator().manual_seed(seed))
    return [stream[i] for i in order.tolist()]


@pytest.mark.parametrize("batch_size", [1, 7, 100])
@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_slots_are_those_of_algorithm_1_given_the_same_draws(
    batch_size: int, in_order: bool, seed: int
) -> None:
    stream = IMBALANCED if in_order else shuffled(IMBALANCED, seed)
    memory = after(stream, 9, batch_size, torch.Generator().manual_seed(seed))
    expected = algorithm_1(stream, 9, torch.Generator().manual_seed(seed))
    assert memory.arrived_at.tolist() == expected


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("batch_size", [1, 10])
def test_classes_that_come_one_after_the_other_end_up_equally_large(
    seed: int, batch_size: int
) -> None:
    stream = [0] * 30 + [1] * 30 + [2] * 30
    memory = after(stream, 9, batch_size, torch.Generator().manual_seed(seed))
    assert memory.counts_by_class() == {0: 3, 1: 3, 2: 3}


@pytest.mark.parametrize("seed", range(5))
def test_a_class_too_small_for_its_share_is_kept_whole(seed: int) -> None:
    stream = [0] * 30 + [1] * 2 + [2] * 15 + [3]
    memory = after(stream, 12, 10, torch.Generator().manual_seed(seed))
    counts = memory.counts_by_class()
    assert (counts[1], counts[3]) == (2, 1)
    assert sorted((counts[0], counts[2])) == [4, 5]


def test_within_a_class_every_arrival_is_kept_equally_often(rng: torch.Generator) -> None:
    # 15 of class 0, then 15 of class 1, capacity 6: always 3 of each, so inclusions of a class
    # have covariance -p (1 - p) / (n - 1). 600 streams.
    counts = torch.zeros(30)
    for _ in range(600):
        memory = after([0] * 15 + [1] * 15, 6, 10, rng)
        assert memory.counts_by_class() == {0: 3, 1: 3}
        counts[memory.arrived_at - 1] += 1
    expected = torch.full((15,), 600 * 3 / 15, dtype=torch.float64)
    factor = 14 / (15 * (1 - 3 / 15))
    assert chi_square_p_value(counts[:15], expected, factor=factor) > 1e-6
    assert chi_square_p_value(counts[15:], expected, factor=factor) > 1e-6


def test_what_it_remembers_comes_back_from_its_state(rng: torch.Generator) -> None:
    # 5 5 5 2 fill the memory; the next 2 makes it 5 5 2 2, so that the 7 finds both the largest.
    storage, memory = ClassBalanced(), Memory(4)
    store(storage, memory, torch.tensor([5, 5, 5, 2, 2, 7, 5]), rng)
    again = ClassBalanced()
    again.restore(storage.state())
    state = {name: tensor.tolist() for name, tensor in again.state().items()}
    assert state == {"classes": [2, 5, 7], "seen": [2, 4, 1], "full": [2, 5]}


def test_a_state_does_not_move_with_the_policy(rng: torch.Generator) -> None:
    storage, memory = ClassBalanced(), Memory(4)
    store(storage, memory, torch.tensor([5, 5]), rng)
    state = storage.state()
    storage.place(torch.tensor([5]), memory, ChosenEvidence(), rng)
    assert state["seen"].tolist() == [2]


@pytest.mark.parametrize("seed", range(3))
def test_slots_do_not_depend_on_how_classes_are_numbered(seed: int) -> None:
    stream = shuffled(IMBALANCED, seed)
    far_apart = [10**12 * cls + 7 for cls in stream]
    near, far = (
        after(classes, 9, 7, torch.Generator().manual_seed(seed)) for classes in (stream, far_apart)
    )
    assert near.arrived_at.tolist() == far.arrived_at.tolist()


def test_labels_that_are_no_classes_are_refused(rng: torch.Generator) -> None:
    storage, memory = ClassBalanced(), Memory(4)
    memory.write(torch.tensor([0]), torch.zeros(1, 1), torch.tensor([0.5]), arrived_at=1)
    with pytest.raises(TypeError, match="`labels` are real numbers, not classes"):
        storage.place(torch.tensor([0.5]), memory, ChosenEvidence(), rng)
