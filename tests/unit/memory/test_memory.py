import re
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from recollect import Memory, nested
from recollect.errors import CheckpointError

# Of one slot: arrived_at, stored_at and times_replayed are int64, margin_increment and score
# float32.
COLUMN_BYTES = 3 * 8 + 2 * 4


def filled(count: int, *, capacity: int = 4) -> Memory:
    """A memory whose slot i holds the input [i, i] of class 10 i, arrived as number i + 1."""
    memory = Memory(capacity)
    values = torch.arange(count)
    memory.write(
        values,
        values.float().unsqueeze(1).expand(-1, 2),
        10 * values,
        arrived_at=values + 1,
    )
    memory.seen = count
    return memory


def tensors_of(memory: Memory) -> list[Tensor]:
    """Every tensor a memory holds on to, found by looking at all its attributes."""
    holders = (memory, *memory._stored)
    held = [value for holder in holders for value in vars(holder).values()]
    return [value for value in held if isinstance(value, Tensor)]


# --- bytes ----------------------------------------------------------------------------------------


def test_bytes_are_exactly_those_of_the_slots_however_much_is_written(
    rng: torch.Generator,
) -> None:
    memory = Memory(capacity=7)
    bytes_per_slot = 3 * 5 + 8 + COLUMN_BYTES  # a 3 x 5 uint8 image, an int64 label
    for _ in range(200):
        count = int(torch.randint(1, 4, (), generator=rng))
        start = min(len(memory), 7 - count)
        images = torch.randint(256, (count, 3, 5), generator=rng, dtype=torch.uint8)
        labels = torch.randint(5, (count,), generator=rng)
        memory.write(torch.arange(start, start + count), images, labels, arrived_at=1)
    assert memory.nbytes == 7 * bytes_per_slot
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage() for t in tensors_of(memory)}
    assert sum(storage.nbytes() for storage in storages.values()) == 7 * bytes_per_slot


def test_a_memory_does_not_keep_the_batch_it_was_given_alive() -> None:
    # One example cut out of a large batch: a view would hold the whole batch's storage.
    batch = torch.zeros(1000, 8)
    memory = Memory(capacity=2)
    memory.write(torch.tensor([0]), batch[:1], torch.tensor([3]), arrived_at=1)
    held = {t.untyped_storage().data_ptr() for t in tensors_of(memory)}
    assert batch.untyped_storage().data_ptr() not in held


def test_changing_the_batch_afterwards_does_not_change_the_memory() -> None:
    batch = torch.zeros(1, 2)
    memory = Memory(capacity=2)
    memory.write(torch.tensor([0]), batch, torch.tensor([3]), arrived_at=1)
    batch.fill_(9)
    inputs, _ = memory.read(torch.tensor([0]))
    assert isinstance(inputs, Tensor)
    assert inputs.tolist() == [[0, 0]]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float16, torch.float64])
def test_examples_stay_in_the_dtype_they_came_in(dtype: torch.dtype) -> None:
    memory = Memory(capacity=2)
    memory.write(torch.tensor([0]), torch.ones(1, 3, dtype=dtype), torch.tensor([0]), arrived_at=1)
    inputs, _ = memory.read(torch.tensor([0]))
    assert isinstance(inputs, Tensor)
    assert inputs.dtype == dtype


def test_before_the_first_example_only_the_columns_take_bytes() -> None:
    assert Memory(capacity=10).nbytes == 10 * COLUMN_BYTES


# --- reading and writing --------------------------------------------------------------------------


def test_what_is_read_is_what_was_written() -> None:
    inputs, labels = filled(4).read(torch.tensor([2, 0]))
    assert isinstance(inputs, Tensor)
    assert inputs.tolist() == [[2, 2], [0, 0]]
    assert labels.tolist() == [20, 0]


def test_a_memory_fills_up() -> None:
    empty, partly, full = Memory(4), filled(3), filled(4)
    assert [len(memory) for memory in (empty, partly, full)] == [0, 3, 4]
    assert [memory.is_empty for memory in (empty, partly, full)] == [True, False, False]
    assert [memory.is_full for memory in (empty, partly, full)] == [False, False, True]


def test_overwriting_a_slot_changes_that_slot_only() -> None:
    memory = filled(3)
    memory.write(torch.tensor([1]), torch.full((1, 2), 9.0), torch.tensor([5]), arrived_at=8)
    inputs, labels = memory.read(torch.arange(3))
    assert isinstance(inputs, Tensor)
    assert inputs[:, 0].tolist() == [0, 9, 2]
    assert labels.tolist() == [0, 5, 20]
    assert memory.arrived_at[:3].tolist() == [1, 8, 3]
    assert len(memory) == 3


def test_writing_nothing_changes_nothing() -> None:
    memory = filled(3)
    nobody = torch.empty(0, dtype=torch.int64)
    memory.write(nobody, torch.empty(0, 2), nobody, arrived_at=1)
    assert len(memory) == 3
    assert memory.labels[:3].tolist() == [0, 10, 20]


def test_overwriting_starts_all_columns_of_the_slot_afresh() -> None:
    memory = filled(2)
    memory.mark_replayed(torch.tensor([0, 1]))
    memory.margin_increment[:] = 0.5
    memory.score[:] = 0.25
    memory.clock = 6
    memory.write(torch.tensor([1]), torch.zeros(1, 2), torch.tensor([5]), arrived_at=9)
    assert memory.times_replayed.tolist() == [1, 0, 0, 0]
    assert memory.margin_increment.tolist() == [0.5, 0.0, 0.5, 0.5]
    assert memory.score.tolist() == [0.25, 0.0, 0.25, 0.25]
    assert memory.stored_at.tolist() == [0, 6, 0, 0]


@pytest.mark.parametrize(
    "inputs",
    [
        (torch.arange(3.0), torch.arange(6).reshape(3, 2)),
        {"image": torch.zeros(3, 2, dtype=torch.uint8), "text": torch.arange(3)},
        [torch.arange(3.0), {"deep": (torch.arange(3),)}],
    ],
)
def test_structured_inputs_come_back_in_their_structure(inputs: object) -> None:
    memory = Memory(3)
    memory.write(torch.arange(3), inputs, torch.zeros(3), arrived_at=1)
    read, _ = memory.read(torch.arange(3))
    assert nested.skeleton(read) == nested.skeleton(inputs)
    pairs = zip(nested.leaves(read), nested.leaves(inputs), strict=True)
    assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in pairs)


def test_replays_are_counted_by_slot() -> None:
    memory = filled(3)
    memory.mark_replayed(torch.tensor([0, 2]))
    memory.mark_replayed(torch.tensor([2]))
    memory.mark_replayed(torch.tensor([0]), times=-1)
    assert memory.times_replayed.tolist() == [0, 0, 2, 0]


# --- looking in -----------------------------------------------------------------------------------


def test_age_counts_updates_from_one() -> None:
    memory = filled(2)
    memory.clock = 3
    memory.write(torch.tensor([2]), torch.zeros(1, 2), torch.tensor([5]), arrived_at=9)
    assert memory.ages().tolist() == [4, 4, 1]
    assert memory.ages(torch.tensor([2, 0])).tolist() == [1, 4]


def test_counts_by_class_are_sorted_and_leave_free_slots_out() -> None:
    memory = Memory(5)
    labels = torch.tensor([7, 2, 7])
    memory.write(torch.arange(3), torch.zeros(3, 1), labels, arrived_at=1)
    assert list(memory.counts_by_class().items()) == [(2, 1), (7, 2)]


def test_an_empty_memory_counts_no_class() -> None:
    assert Memory(5).counts_by_class() == {}


def test_real_valued_labels_are_not_counted() -> None:
    memory = Memory(2)
    memory.write(torch.tensor([0]), torch.zeros(1, 1), torch.tensor([0.5]), arrived_at=1)
    with pytest.raises(TypeError, match="`labels` are real numbers, not classes"):
        memory.counts_by_class()


def test_labels_of_several_numbers_are_not_counted() -> None:
    memory = Memory(2)
    memory.write(torch.tensor([0]), torch.zeros(1, 1), torch.tensor([[1, 2]]), arrived_at=1)
    with pytest.raises(TypeError, match=r"`labels` have shape \(2,\) each, not one class"):
        memory.counts_by_class()


def test_a_slot_tells_everything_about_its_example() -> None:
    memory = filled(3)
    memory.clock = 4
    memory.mark_replayed(torch.tensor([2]))
    memory.margin_increment[2], memory.score[2] = 0.5, 0.25
    slot = memory.slot(2)
    assert isinstance(slot.inputs, Tensor)
    assert slot.inputs.tolist() == [2, 2]
    assert int(slot.label) == 20
    assert (slot.index, slot.age, slot.times_replayed, slot.arrived_at) == (2, 5, 1, 3)
    assert (slot.margin_increment, slot.score) == (0.5, 0.25)


@pytest.mark.parametrize("index", [3, 4, -1])
def test_a_slot_without_an_example_is_refused(index: int) -> None:
    with pytest.raises(IndexError, match=f"slot {index} is empty; filled slots are 0 to 2"):
        filled(3).slot(index)


def test_an_empty_memory_says_that_it_has_no_slot_to_show() -> None:
    with pytest.raises(IndexError, match="slot 0 is empty; the memory holds no example yet"):
        Memory(3).slot(0)


@pytest.mark.parametrize("slots", [[3], [0, 4], [-1], [1, 9]])
def test_reading_a_slot_without_an_example_is_refused(slots: list[int]) -> None:
    with pytest.raises(IndexError, match=r"slot (3|4|-1|9) is empty; filled slots are 0 to 2"):
        filled(3).read(torch.tensor(slots))


@pytest.mark.parametrize("slots", [[4], [0, -1]])
def test_reading_a_slot_that_a_full_memory_does_not_have_is_refused(slots: list[int]) -> None:
    with pytest.raises(IndexError):
        filled(4).read(torch.tensor(slots))


@pytest.mark.parametrize("slots", [[0], []])
def test_an_empty_memory_says_that_it_has_nothing_to_read(slots: list[int]) -> None:
    with pytest.raises(IndexError, match="slot 0 is empty; the memory holds no example yet"):
        Memory(3).read(torch.tensor(slots, dtype=torch.int64))


def test_labels_are_those_of_filled_slots() -> None:
    assert [memory.labels.tolist() for memory in (Memory(4), filled(3), filled(4))] == [
        [],
        [0, 10, 20],
        [0, 10, 20, 30],
    ]


def test_room_that_was_made_can_be_given_back() -> None:
    memory = Memory(4)
    assert memory.make_room(torch.zeros(1, 2), torch.tensor([0]))
    assert not memory.make_room(torch.zeros(1, 2), torch.tensor([0]))
    assert (len(memory), memory.nbytes) == (0, 4 * (COLUMN_BYTES + 2 * 4 + 8))
    memory.give_back_room()
    assert memory.nbytes == 4 * COLUMN_BYTES
    memory.write(torch.tensor([0]), torch.zeros(1, 3), torch.tensor([0.5]), arrived_at=1)
    assert len(memory) == 1


def test_repr_tells_how_full_it_is() -> None:
    assert repr(filled(3)) == "Memory(capacity=4, filled=3, seen=3)"


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_capacity_below_one_is_refused(capacity: int) -> None:
    with pytest.raises(ValueError, match=f"`capacity` is {capacity}; .* at least 1 slot.*'van'"):
        Memory(capacity)


@pytest.mark.parametrize("capacity", [2.5, True, "5", None])
def test_a_capacity_that_is_no_whole_number_is_refused(capacity: object) -> None:
    with pytest.raises(TypeError, match=f"`capacity` is {capacity!r}; pass a whole number"):
        Memory(capacity)  # type: ignore[arg-type]


def test_a_numpy_capacity_is_the_whole_number_it_holds() -> None:
    capacity: Any = np.int64(3)
    assert repr(Memory(capacity)) == "Memory(capacity=3, filled=0, seen=0)"
    assert type(Memory(capacity).capacity) is int


def test_an_empty_memory_takes_any_shape() -> None:
    Memory(3).check_fits({"any": torch.zeros(1, 2, 3)}, torch.zeros(1))


@pytest.mark.parametrize("count", [1, 2, 9])
def test_more_of_the_same_fits_in_any_number(count: int) -> None:
    filled(3).check_fits(torch.zeros(count, 2), torch.zeros(count, dtype=torch.int64))


def test_another_shape_is_refused_with_both_shapes() -> None:
    with pytest.raises(ValueError, match=r"shape \(3,\), the memory holds \(2,\).*else resize"):
        filled(3).check_fits(torch.zeros(1, 3), torch.tensor([0]))


def test_another_dtype_is_refused_with_both_dtypes() -> None:
    with pytest.raises(TypeError, match=r"dtype torch.float64, the memory holds torch.float32"):
        filled(3).check_fits(torch.zeros(1, 2, dtype=torch.float64), torch.tensor([0]))


@pytest.mark.parametrize("inputs", [(torch.zeros(1, 2),), {"x": torch.zeros(1, 2)}])
def test_another_structure_is_refused(inputs: object) -> None:
    with pytest.raises(ValueError, match="`inputs` has another structure"):
        filled(3).check_fits(inputs, torch.tensor([0]))


def test_a_dict_with_other_names_is_refused() -> None:
    memory = Memory(2)
    memory.write(torch.tensor([0]), {"a": torch.zeros(1)}, torch.tensor([0]), arrived_at=1)
    with pytest.raises(ValueError, match="`inputs` has another structure"):
        memory.check_fits({"b": torch.zeros(1)}, torch.tensor([0]))


@pytest.mark.parametrize(
    "labels", [torch.tensor([0.0]), torch.tensor([0], dtype=torch.int32), torch.tensor([[0]])]
)
def test_other_labels_are_refused(labels: Tensor) -> None:
    with pytest.raises(TypeError, match=r"`labels` has dtype .*, the memory holds torch.int64"):
        filled(3).check_fits(torch.zeros(1, 2), labels)


# --- checkpoints ----------------------------------------------------------------------------------


def _state_of(memory: Memory) -> tuple[dict[str, list[object]], dict[str, object]]:
    tensors, facts = memory.state()
    return {name: tensor.tolist() for name, tensor in tensors.items()}, facts


@pytest.mark.parametrize("count", [0, 1, 3, 4])
def test_a_memory_comes_back_from_its_state(count: int) -> None:
    memory = filled(count) if count else Memory(4)
    memory.clock, memory.seen = 6, 11
    memory.mark_replayed(torch.arange(count))
    memory.margin_increment[:count] = 0.5
    memory.score[:count] = torch.arange(count).float()
    again = Memory.from_state(*memory.state())
    assert _state_of(again) == _state_of(memory)
    assert (len(again), again.seen, again.clock, again.capacity) == (count, 11, 6, 4)
    assert again.nbytes == memory.nbytes


@pytest.mark.parametrize(("count", "capacity"), [(1, 4), (1, 1), (3, 4)])
def test_values_of_a_state_lie_side_by_side(count: int, capacity: int) -> None:
    tensors, _ = filled(count, capacity=capacity).state()
    assert all(tensor.stride(-1) == 1 for tensor in tensors.values())


def test_a_memory_of_structured_inputs_comes_back_from_its_state() -> None:
    memory = Memory(3)
    inputs = {"a": torch.arange(2), "b": (torch.zeros(2, 3, dtype=torch.uint8),)}
    memory.write(torch.arange(2), inputs, torch.tensor([0.5, 1.5]), arrived_at=1)
    again = Memory.from_state(*memory.state())
    read, labels = again.read(torch.arange(2))
    assert nested.skeleton(read) == nested.skeleton(inputs)
    assert [leaf.dtype for leaf in nested.leaves(read)] == [torch.int64, torch.uint8]
    assert labels.tolist() == [0.5, 1.5]


def test_a_memory_that_came_back_takes_more_examples() -> None:
    again = Memory.from_state(*filled(3).state())
    again.write(torch.tensor([3]), torch.zeros(1, 2), torch.tensor([1]), arrived_at=4)
    assert again.is_full


def test_a_memory_that_came_back_shares_nothing_with_the_first() -> None:
    memory = filled(3)
    again = Memory.from_state(*memory.state())
    memory.write(torch.tensor([0]), torch.full((1, 2), 9.0), torch.tensor([1]), arrived_at=4)
    inputs, _ = again.read(torch.tensor([0]))
    assert isinstance(inputs, Tensor)
    assert inputs.tolist() == [[0, 0]]


@pytest.mark.parametrize("count", ["filled", "seen", "clock"])
@pytest.mark.parametrize("value", [-1, "3", None, 1.5])
def test_damaged_counters_are_refused(count: str, value: object) -> None:
    tensors, facts = filled(3).state()
    with pytest.raises(CheckpointError, match=f"the memory's counters are damaged: `{count}` is"):
        Memory.from_state(tensors, {**facts, count: value})


def test_more_filled_slots_than_there_are_is_refused() -> None:
    tensors, facts = filled(3).state()
    with pytest.raises(CheckpointError, match=r"damaged: `filled` is 5, not .* to 4\."):
        Memory.from_state(tensors, {**facts, "filled": 5})


@pytest.mark.parametrize("capacity", [10**9 + 1, 2**63, 10**24])
def test_a_memory_that_no_machine_has_is_refused_in_words(capacity: int) -> None:
    with pytest.raises(ValueError, match=f"`capacity` is {capacity}; a memory has at most"):
        Memory(capacity)


@pytest.mark.parametrize("device", ["cuda:77", "nonsense", (3,), "meta"])
def test_a_device_that_is_not_there_is_refused_with_its_name(device: Any) -> None:
    with pytest.raises(ValueError, match=f"`device` is .{re.escape(str(device))}., .*; pass"):
        Memory(3, device=device)
