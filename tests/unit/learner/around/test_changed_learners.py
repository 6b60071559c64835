"""Checkpoints that outlive a decision: built from the file alone, or with parts that differ."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.learner.support import CLASSES, OPTIONS, SHAPE, model, sgd
from torch import Tensor

from recollect import METHODS, Learner, Memory, method
from recollect.errors import CheckpointError
from recollect.memory.resizing import resized
from recollect.rules import GradientSum, PrincipalDirection, Rule
from recollect.storage import Reservoir


def batch(step: int) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(step)
    return torch.rand(4, *SHAPE, generator=rng), torch.randint(CLASSES, (4,), generator=rng)


def learner(name: str = "er", *, capacity: int = 12, replay: int = 4, **options: Any) -> Learner:
    parts = model()
    return method(name, parts, sgd(parts), capacity=capacity, replay=replay, seed=0, **options)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return saved_as(tmp_path, learner())


def saved_as(folder: Path, one: Learner) -> Path:
    for step in range(8):
        one.observe(*batch(step))
    path = folder / "learner.ckpt"
    one.save(path)
    return path


def goes_on_alike(one: Learner, other: Learner) -> bool:
    for step in range(8, 12):
        first, second = one.observe(*batch(step)), other.observe(*batch(step))
        if first.replayed_slots.tolist() != second.replayed_slots.tolist():
            return False
    pairs = zip(one.model.parameters(), other.model.parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("name", METHODS)
def test_a_learner_is_built_from_its_file_and_goes_on_to_the_bit(name: str, tmp_path: Path) -> None:
    augment = OPTIONS.get(name, {}).get("augment")  # code, which no file holds
    one = learner(name, iterations=2, augment=augment)
    path = saved_as(tmp_path, one)
    parts = model()
    again = Learner.from_checkpoint(path, parts, sgd(parts), augment=augment)
    assert repr(again) == repr(one)
    assert goes_on_alike(one, again)


@dataclass(frozen=True)
class Half(Rule):
    """A rule of the user's."""

    def __call__(self, gram: Tensor) -> Tensor:
        return torch.full_like(gram[0], 0.5)


def test_a_part_of_ones_own_must_be_handed_in(tmp_path: Path) -> None:
    parts = model()
    one = Learner(parts, sgd(parts), memory=Memory(12), rule=Half())
    path = saved_as(tmp_path, one)
    fresh = model()
    with pytest.raises(CheckpointError, match=r"the checkpoint's rule is .*Half.*`rule=\.\.\.`"):
        Learner.from_checkpoint(path, fresh, sgd(fresh))
    assert goes_on_alike(one, Learner.from_checkpoint(path, fresh, sgd(fresh), rule=Half()))


@dataclass(frozen=True)
class HeldBack(Half):
    """A rule that counts as false, as whatever has a length of 0."""

    def __len__(self) -> int:
        return 0


def test_a_part_of_ones_own_may_count_as_false(tmp_path: Path) -> None:
    parts, fresh = model(), model()
    path = saved_as(tmp_path, Learner(parts, sgd(parts), memory=Memory(12), rule=HeldBack()))
    again = Learner.from_checkpoint(path, fresh, sgd(fresh), rule=HeldBack())
    assert isinstance(again.rule, HeldBack)


def test_without_the_word_a_difference_is_refused_and_the_word_is_named(saved: Path) -> None:
    for other in (learner("er-p"), learner(capacity=20), learner(replay=2), learner("er-cb")):
        with pytest.raises(CheckpointError, match="name what is to differ in `changed`"):
            other.load(saved)
    with pytest.raises(ValueError, match=r"`changed` names \['rules'\]; choose from capacity"):
        learner().load(saved, changed=("rules",))


def test_another_rule_replay_storage_and_optimizer_go_on_with_the_rest(saved: Path) -> None:
    one = learner("er-p", replay=6)
    one.load(saved, changed=("rule", "replay"))
    assert isinstance(one.rule, PrincipalDirection)
    assert one.memory is not None
    assert (one.step, len(one.memory)) == (8, 12)
    assert len(one.observe(*batch(8)).replayed_slots) == 6
    balanced = learner("er-cb")
    balanced.load(saved, changed=("storage",))
    balanced.observe(*batch(8))
    parts = model()
    adam = method("er", parts, torch.optim.Adam(parts.parameters()), capacity=12, replay=4)
    adam.load(saved, changed=("optimizer",))
    adam.observe(*batch(8))


def test_replay_alone_does_not_let_another_retrieval_pass(saved: Path) -> None:
    with pytest.raises(CheckpointError, match="retrieval"):
        learner("er-mir", candidates=8).load(saved, changed=("replay",))


def test_a_larger_memory_keeps_everything_and_a_smaller_one_a_part(saved: Path) -> None:
    known = learner()
    known.load(saved)
    assert known.memory is not None
    for capacity in (30, 5):
        one = learner(capacity=capacity)
        one.load(saved, changed=("capacity",))
        assert one.memory is not None
        assert one.memory.capacity == capacity
        assert set(one.memory.ids()) <= set(known.memory.ids())
        assert len(one.memory) == min(12, capacity)
        for index in range(len(one.memory)):
            here = one.memory.slot(index)
            there = known.memory.slot(int(known.memory.find(here.id) or 0))
            assert torch.equal(here.inputs, there.inputs)  # type: ignore[arg-type]
            assert (here.age, here.times_replayed) == (there.age, there.times_replayed)
        for step in range(8, 20):
            one.observe(*batch(step))


def with_limit(max_bytes: int | None) -> Learner:
    parts = model()
    return Learner(parts, sgd(parts), memory=Memory(12, max_bytes=max_bytes), seed=0)


@pytest.mark.parametrize(("first", "second"), [(None, 700), (700, None), (900, 700)])
def test_another_limit_in_bytes_is_refused_without_the_word_and_held_to_with_it(
    first: int | None, second: int | None, tmp_path: Path
) -> None:
    path = saved_as(tmp_path, with_limit(first))
    one = with_limit(second)
    memory = one.memory
    assert memory is not None
    with pytest.raises(CheckpointError, match=f"`max_bytes` {first}, .* has {second}; nothing was"):
        one.load(path)
    assert (memory.max_bytes, len(memory)) == (second, 0)
    one.load(path, changed=("capacity",))
    assert memory.max_bytes == second
    for step in range(8, 20):
        assert memory.nbytes <= (second or memory.nbytes)
        assert len(memory) > 0
        one.observe(*batch(step))


def test_texts_beyond_another_limit_make_way_as_the_checkpoint_is_loaded(tmp_path: Path) -> None:
    def build(max_bytes: int | None) -> Learner:
        parts = torch.nn.Sequential(torch.nn.EmbeddingBag(9, 4), torch.nn.Linear(4, CLASSES))
        return Learner(parts, sgd(parts), memory=Memory(50, max_bytes=max_bytes))

    first = build(None)
    for _ in range(8):
        first.observe([[1] * (1 + i) for i in range(4)], [0, 1, 2, 3])
    first.save(tmp_path / "it")
    one = build(1500)
    one.load(tmp_path / "it", changed=("capacity",))
    assert one.memory is not None
    assert 0 < len(one.memory) < 32
    assert one.memory.nbytes <= 1500
    one.observe([[1, 2], [3]], [0, 1])
    assert one.memory.nbytes <= 1500


def kept_through(first: int, second: int, seed: int) -> list[int]:
    """Stream 40 examples through a reservoir that changes its size after 20."""
    rng, memory = torch.Generator().manual_seed(seed), Memory(first)
    for step in range(40):
        if step == 20:
            memory = resized(memory, second, rng)
        labels = torch.zeros(1, dtype=torch.int64)
        admitted = Reservoir().admit(labels, memory, rng)
        if len(admitted):
            slots = Reservoir().place(labels, memory, None, rng).slots  # type: ignore[arg-type]
            memory.write(slots, torch.zeros(1, 1), labels, arrived_at=step + 1)
        memory.seen += 1
    return memory.arrived_at[: len(memory)].tolist()


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), [(8, 4), (4, 12)])
def test_a_reservoirs_promise_holds_after_its_size_changed(first: int, second: int) -> None:
    streams, counts = 3000, torch.zeros(41)
    for seed in range(streams):
        counts[kept_through(first, second, seed)] += 1
    old, new = counts[1:21].sum() / 20 / streams, counts[21:].sum() / 20 / streams
    expected = 4 / 40 if second == 4 else 4 / 20  # a larger one keeps the share it had
    for share in (float(old), float(new)):
        # 60,000 draws: a deviation is 0.0013 or 0.0016.
        assert share == pytest.approx(expected, abs=0.01)


def test_nothing_in_a_description_is_run(saved: Path) -> None:
    from recollect.learner.saved.rebuilding import rebuilt

    for text in (
        "__import__('os').system('true')",
        "recollect.rules.gradient_sum.GradientSum(x=__import__('os'))",
        "recollect.rules.gradient_sum.GradientSum(*[1])",
        "os.system(command='true')",
        "(" * 5000,
    ):
        with pytest.raises(CheckpointError, match="cannot be built again from its name"):
            rebuilt("rule", text)
    name = f"{GradientSum.__module__}.{GradientSum.__qualname__}"
    assert isinstance(rebuilt("rule", f"{name}()"), GradientSum)
