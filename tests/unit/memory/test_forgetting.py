from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from recollect import Memory
from recollect.ragged import Ragged


def rows(numbers: list[int]) -> Tensor:
    return torch.tensor(numbers)[:, None] * torch.ones(1, 2, dtype=torch.int64)


def ragged(numbers: list[int]) -> Ragged:
    return Ragged([torch.full((number,), number) for number in numbers])


def texts(numbers: list[int]) -> Ragged:
    return Ragged([str(number) * number for number in numbers])


KINDS: dict[str, Callable[[list[int]], object]] = {"rows": rows, "ragged": ragged, "texts": texts}


def filled(kind: str, count: int, *, named: bool = False, capacity: int = 8) -> Memory:
    memory = Memory(capacity)
    numbers = list(range(1, count + 1))
    slots = torch.arange(count)
    ids = [f"id {number}" for number in numbers] if named else None
    memory.write(slots, KINDS[kind](numbers), torch.tensor(numbers), arrived_at=slots + 1, ids=ids)
    memory.times_replayed[:count] = torch.tensor(numbers) * 10
    memory.score[:count] = torch.tensor(numbers) / 10
    memory.seen = count
    return memory


def numbers_in(memory: Memory) -> list[int]:
    """What each slot holds, told by its label; every fact of the slot must agree with it."""
    found = []
    for index in range(len(memory)):
        slot = memory.slot(index)
        number = int(slot.label)
        shown = slot.inputs.tolist() if isinstance(slot.inputs, Tensor) else slot.inputs
        assert shown in ([number] * 2, [number] * number, str(number) * number)
        assert (slot.arrived_at, slot.times_replayed) == (number, 10 * number)
        assert slot.score == pytest.approx(number / 10)
        found.append(number)
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("gone", "left"),
    [
        ([], [1, 2, 3, 4, 5, 6]),
        ([0], [6, 2, 3, 4, 5]),
        ([5], [1, 2, 3, 4, 5]),
        ([1, 4], [1, 6, 3, 4]),
        ([0, 1, 2, 3], [5, 6]),
        ([0, 1, 2, 3, 4, 5], []),
    ],
)
def test_what_stays_keeps_all_that_is_known_of_it(
    kind: str, gone: list[int], left: list[int]
) -> None:
    memory = filled(kind, 6)
    moved = memory.drop(gone)
    assert numbers_in(memory) == left
    assert all(left[target] == source + 1 for source, target in moved.items())


@pytest.mark.parametrize("kind", KINDS)
def test_a_freed_slot_is_written_again(kind: str) -> None:
    memory = filled(kind, 8)
    memory.drop([2, 3])
    memory.write(torch.tensor([6]), KINDS[kind]([9]), torch.tensor([9]), arrived_at=9)
    memory.times_replayed[6], memory.score[6] = 90, 0.9
    assert numbers_in(memory) == [1, 2, 7, 8, 5, 6, 9]


@pytest.mark.parametrize("kind", KINDS)
def test_dropping_may_be_done_again_from_its_start(kind: str) -> None:
    memory = filled(kind, 6, named=True)
    action, _ = memory.prepared_drop([0, 1])
    action()
    action()
    assert numbers_in(memory) == [5, 6, 3, 4]
    assert memory.ids() == ["id 5", "id 6", "id 3", "id 4"]


def test_nothing_of_a_dropped_example_is_left_in_any_tensor() -> None:
    memory = filled("rows", 6)
    memory.drop([0])
    (column,) = memory._stored
    assert not (column.read(torch.arange(8)) == 1).any()  # type: ignore[union-attr]
    for table in (memory._labels, memory._counts, memory._measures):
        assert not table[5:].any()


def test_names_move_with_their_examples_and_go_with_them() -> None:
    memory = filled("texts", 6, named=True)
    memory.drop([1, 4])
    assert memory.ids() == ["id 1", "id 6", "id 3", "id 4"]
    assert (memory.find("id 6"), memory.find("id 2")) == (1, None)
    memory.write(torch.tensor([0]), texts([9]), torch.tensor([9]), arrived_at=9)
    assert memory.ids() == [9, "id 6", "id 3", "id 4"]


def test_without_names_the_number_in_the_stream_is_the_id() -> None:
    memory = filled("rows", 3)
    assert memory.ids() == [1, 2, 3]
    assert (memory.find(3), memory.find(4)) == (2, None)
    assert memory.slot(1).id == 2


@pytest.mark.parametrize("kind", KINDS)
def test_names_and_ragged_examples_come_back_from_the_state(kind: str) -> None:
    memory = filled(kind, 5, named=True)
    memory.drop([0])
    again = Memory.from_state(*memory.state())
    assert numbers_in(again) == numbers_in(memory)
    assert again.ids() == memory.ids()


def test_slots_that_hold_nothing_cannot_be_dropped() -> None:
    with pytest.raises(IndexError, match="slot 6 is empty"):
        filled("rows", 6).drop([0, 6])
    with pytest.raises(IndexError, match="slot -1 is empty"):
        filled("rows", 6).drop([-1])


# --- a limit in bytes -----------------------------------------------------------------------------


def test_with_one_shape_the_limit_sets_the_number_of_slots() -> None:
    memory = Memory(1000, max_bytes=1000)
    memory.write(torch.tensor([0]), torch.zeros(1, 10), torch.tensor([0]), arrived_at=1)
    # 40 bytes of floats, 8 of label, 3 x 8 and 2 x 4 of columns
    assert memory.capacity == 1000 // 80
    assert memory.nbytes <= 1000
    assert Memory.from_state(*memory.state()).capacity == 12


def test_a_limit_below_one_example_is_refused_with_what_it_takes() -> None:
    memory = Memory(10, max_bytes=79)
    with pytest.raises(ValueError, match="`max_bytes` is 79, but one example takes 80"):
        memory.make_room(torch.zeros(1, 10), torch.tensor([0]))
    for limit in (0, -1, True, 1.5):
        with pytest.raises(ValueError, match="`max_bytes` is"):
            Memory(10, max_bytes=limit)  # type: ignore[arg-type]


def test_bytes_beyond_the_limit_are_counted_and_dropping_frees_what_it_says() -> None:
    memory = Memory(10, max_bytes=10 * 40 + 100)
    numbers = [1, 5, 9]
    memory.write(torch.arange(3), ragged(numbers), torch.tensor(numbers), arrived_at=1)
    assert memory.bytes_by_slot() == [8, 40, 72]
    assert memory.bytes_over() == 20
    memory.drop([1])
    assert memory.bytes_over() == 0
    memory.fall_to(len(memory))
    assert memory.is_full
    again = Memory.from_state(*memory.state())
    assert (again.capacity, again.num_slots, again.max_bytes) == (2, 10, 500)
