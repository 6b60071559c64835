from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from recollect.errors import CheckpointError
from recollect.memory.columns import Column, Examples, PlainCodec, column_for, column_from_state
from recollect.ragged import Ragged

CPU, CODEC = torch.device("cpu"), PlainCodec()


def dense(seed: int, count: int) -> Tensor:
    return torch.randint(9, (count, 2, 3), generator=torch.Generator().manual_seed(seed))


def shaped(seed: int, count: int) -> Ragged:
    rng = torch.Generator().manual_seed(seed)
    sides = torch.randint(1, 5, (count, 2), generator=rng).tolist()
    return Ragged([torch.randint(9, side, generator=rng) for side in sides])


def objects(seed: int, count: int) -> Ragged:
    kinds = ["text", "", "äö\udcff", b"\x00bytes", {"a": [1, 2.5, None]}, 7, True]
    return Ragged([kinds[(seed + index) % len(kinds)] for index in range(count)])


KINDS: dict[str, Callable[[int, int], Examples]] = {
    "dense": dense,
    "shaped": shaped,
    "objects": objects,
}


def plain(examples: Examples) -> list[object]:
    return [e.tolist() if isinstance(e, Tensor) else e for e in examples]


def held(column: Column, filled: int) -> list[object]:
    return plain(column.read(torch.arange(filled)))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Callable[[int, int], Examples]:
    return KINDS[request.param]


def test_what_was_written_is_read_from_any_slots(kind: Callable[[int, int], Examples]) -> None:
    first, second = kind(0, 5), kind(3, 2)
    column = column_for(first, 8, CPU, CODEC)
    column.write(torch.arange(5), first)
    column.write(torch.tensor([4, 1]), second)
    expected = plain(first)
    expected[4], expected[1] = plain(second)
    assert held(column, 5) == expected
    assert plain(column.read(torch.tensor([3, 1]))) == [expected[3], expected[1]]


def test_the_state_gives_the_column_back(kind: Callable[[int, int], Examples]) -> None:
    given = kind(1, 6)
    column = column_for(given, 9, CPU, CODEC)
    column.write(torch.arange(6), given)
    again = column_from_state(column.state(6), 9, CPU, CODEC)
    assert held(again, 6) == plain(given)
    again.write(torch.tensor([8]), kind(5, 1))
    assert plain(again.read(torch.tensor([8]))) == plain(kind(5, 1))


def test_a_written_example_does_not_change_with_the_batch_it_came_in() -> None:
    for given in (dense(0, 3), shaped(0, 3)):
        column = column_for(given, 3, CPU, CODEC)
        column.write(torch.arange(3), given)
        before = held(column, 3)
        for tensor in given if isinstance(given, Tensor) else given.tensors():
            tensor.fill_(-1)
        assert held(column, 3) == before


def test_what_is_read_is_a_copy() -> None:
    for given in (dense(0, 3), shaped(0, 3)):
        column = column_for(given, 3, CPU, CODEC)
        column.write(torch.arange(3), given)
        before = held(column, 3)
        found = column.read(torch.arange(3))
        for tensor in found if isinstance(found, Tensor) else found.tensors():
            tensor.fill_(-1)
        assert held(column, 3) == before


def test_erasing_leaves_the_others_alone(kind: Callable[[int, int], Examples]) -> None:
    given = kind(0, 4)
    column = column_for(given, 4, CPU, CODEC)
    column.write(torch.arange(4), given)
    column.erase([1])
    expected = plain(given)
    left = plain(column.read(torch.tensor([0, 2, 3])))
    assert left == [expected[0], expected[2], expected[3]]


def test_erasing_overwrites_the_bytes_and_frees_those_that_are_an_examples_own() -> None:
    rows = dense(0, 2) + 1
    column = column_for(rows, 2, CPU, CODEC)
    column.write(torch.arange(2), rows)
    column.erase([0])
    assert not column.state(2)[""][0].any()
    for given in (shaped(0, 3), objects(0, 3)):
        loose = column_for(given, 3, CPU, CODEC)
        loose.write(torch.arange(3), given)
        sizes = loose.sizes(given)
        assert loose.sizes_held(3) == sizes
        loose.erase([1])
        assert loose.nbytes == sizes[0] + sizes[2]


def test_the_very_bytes_of_an_erased_example_are_overwritten() -> None:
    tensors, texts = shaped(0, 1), Ragged(["secret"])
    column = column_for(tensors, 1, CPU, CODEC)
    column.write(torch.tensor([0]), tensors)
    kept = column._rows[0]  # type: ignore[attr-defined]
    column.erase([0])
    assert not kept.any()
    column = column_for(texts, 1, CPU, CODEC)
    column.write(torch.tensor([0]), texts)
    stored = column._rows[0]  # type: ignore[attr-defined]
    column.erase([0])
    assert stored == bytes(len(stored))


def test_a_dense_column_loosens_into_one_that_takes_any_shape() -> None:
    given = dense(0, 3)
    column = column_for(given, 5, CPU, CODEC)
    column.write(torch.arange(3), given)
    longer = torch.ones(1, 7, 3, dtype=torch.int64)
    assert not column.takes(longer)
    loose = column.loosened(3)
    loose.write(torch.tensor([3]), longer)
    assert held(loose, 4) == [*plain(given), *plain(longer)]
    assert held(column, 3) == plain(given)


def test_another_dtype_or_kind_is_refused_with_the_reason() -> None:
    column = column_for(dense(0, 1), 2, CPU, CODEC)
    column.check_kind(shaped(0, 2))
    with pytest.raises(TypeError, match=r"dtype torch\.float32, the memory holds torch\.int64"):
        column.check_kind(torch.zeros(1, 2, 3))
    with pytest.raises(TypeError, match=r"is Ragged\(1 examples of str\), the memory"):
        column.check_kind(Ragged(["a"]))
    texts = column_for(Ragged(["a"]), 2, CPU, CODEC)
    with pytest.raises(TypeError, match="the memory other objects"):
        texts.check_kind(dense(0, 1))
    with pytest.raises(TypeError, match="cannot keep without pickle"):
        texts.check_kind(Ragged([{1}]))


def test_only_tokens_and_masks_may_change_their_length_unasked() -> None:
    for dtype in (torch.int64, torch.int32, torch.bool):
        column_for(torch.zeros(1, 3, dtype=dtype), 2, CPU, CODEC).check_shape(
            torch.zeros(1, 5, dtype=dtype)
        )
    for dtype in (torch.uint8, torch.float32):
        with pytest.raises(ValueError, match=r"shape \(5,\), the memory holds \(3,\)\. .*pad"):
            column_for(torch.zeros(1, 3, dtype=dtype), 2, CPU, CODEC).check_shape(
                torch.zeros(1, 5, dtype=dtype)
            )
    with pytest.raises(ValueError, match=r"shape \(3, 1\), the memory holds \(3,\)"):
        column_for(torch.zeros(1, 3).long(), 2, CPU, CODEC).check_shape(torch.zeros(1, 3, 1).long())


def test_an_object_that_cannot_be_bytes_is_refused_with_the_way_out() -> None:
    for example in (object(), {1: 2}, (1, 2), float("nan"), {"a": {3}}):
        with pytest.raises(TypeError, match="cannot keep without pickle; pass tensors"):
            CODEC.encode(example)


@pytest.mark.parametrize(
    "change",
    [
        {".shapes": torch.tensor([2, 2])},
        {".shapes": torch.tensor([-1, 4])},
        {".dims": torch.tensor([3])},
        {".dims": torch.tensor([-2])},
        {".values": torch.zeros(5)},
    ],
)
def test_damaged_shapes_are_refused(change: dict[str, Tensor]) -> None:
    state = {
        ".values": torch.zeros(6),
        ".shapes": torch.tensor([2, 3]),
        ".dims": torch.tensor([2]),
    }
    assert column_from_state(state, 1, CPU, CODEC).nbytes == 24
    with pytest.raises(CheckpointError, match="do not add up"):
        column_from_state(state | change, 1, CPU, CODEC)


def test_damaged_lengths_and_unknown_kinds_are_refused() -> None:
    for lengths in ([2, 2], [-1, 4]):
        damaged = {".bytes": torch.zeros(3, dtype=torch.uint8), ".lengths": torch.tensor(lengths)}
        with pytest.raises(CheckpointError, match="do not add up"):
            column_from_state(damaged, 4, CPU, CODEC)
    with pytest.raises(CheckpointError, match="damaged"):
        column_from_state({".other": torch.zeros(1)}, 4, CPU, CODEC)
