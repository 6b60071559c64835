"""Margin increments and gradient cosines, against the same thing written out slowly."""

import copy

import pytest
import torch
from tests.unit.learner.support import (
    Batch,
    contents,
    learner,
    model,
    run,
    sgd,
    stream,
)
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from recollect import Learner, Memory
from recollect.storage import Evidence, Placement, Storage

KINDS = ["mlp", "batch norm", "dropout"]
DOUBLE = torch.float64


def margins(net: nn.Module, inputs: Tensor, labels: Tensor) -> Tensor:
    """p of the right class minus the largest p of a wrong one, example by example, in eval mode."""
    judge = copy.deepcopy(net).eval()
    found = []
    for one, label in zip(inputs, labels, strict=True):
        probabilities = judge(one[None]).detach().softmax(1)[0]
        wrong = [p for cls, p in enumerate(probabilities) if cls != int(label)]
        found.append(probabilities[int(label)] - max(wrong))
    return torch.stack(found).float()


class Observed:
    """One step of a confidence reservoir, with all that is needed to say what it should note."""

    def __init__(self, timing: str, kind: str, *, steps: int, iterations: int = 1) -> None:
        # Ten slots and batches of five: the memory is full after two steps, never half way in one.
        self.world = learner(
            "er-c", kind, dtype=DOUBLE, capacity=10, margins=timing, iterations=iterations
        )
        *earlier, self.batch = stream(steps + 1, dtype=DOUBLE)
        run(self.world, earlier)
        assert self.world.memory is not None
        self.memory: Memory = self.world.memory
        self.was_full = self.memory.is_full
        self.old_model = copy.deepcopy(self.world.model)
        self.old_column = self.memory.margin_increment.clone()
        self.old_contents = contents(self.world)
        self.report = self.world.observe(*self.batch)

    @property
    def expected(self) -> Tensor:
        return self.old_column.clone()

    def increments(self, batch: Batch) -> Tensor:
        return margins(self.world.model, *batch) - margins(self.old_model, *batch)

    def of_newcomers(self) -> Tensor:
        chosen = self.report.written.examples
        return self.increments((self.batch[0][chosen], self.batch[1][chosen]))

    def of_stored(self) -> Tensor:
        return self.increments(self.old_contents)

    def assert_noted(self, expected: Tensor) -> None:
        torch.testing.assert_close(self.memory.margin_increment, expected, rtol=0, atol=1e-6)


def first_with_a_replacement(timing: str, kind: str, *, iterations: int = 1) -> Observed:
    for steps in range(2, 9):
        seen = Observed(timing, kind, steps=steps, iterations=iterations)
        if seen.report.written_slots.numel():
            return seen
    raise AssertionError("nothing was replaced in nine steps")


@pytest.mark.parametrize("iterations", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_at_insertion_a_newcomer_is_measured_around_the_step_that_learnt_it(
    kind: str, iterations: int
) -> None:
    seen = first_with_a_replacement("insertion", kind, iterations=iterations)
    expected = seen.expected
    expected[seen.report.written_slots] = seen.of_newcomers()
    seen.assert_noted(expected)


@pytest.mark.parametrize("timing", ["insertion", "both", "all"])
def test_newcomers_of_the_first_step_are_measured_too(timing: str) -> None:
    seen = Observed(timing, "batch norm", steps=0)
    expected = seen.expected
    expected[:5] = seen.of_newcomers()
    seen.assert_noted(expected)
    assert expected[:5].any()


@pytest.mark.parametrize("kind", KINDS)
def test_at_replay_what_is_replayed_is_measured_and_a_newcomer_starts_at_zero(kind: str) -> None:
    seen = first_with_a_replacement("replay", kind)
    expected = seen.expected
    replayed = seen.report.replayed_slots
    expected[replayed] = seen.of_stored()[replayed]
    expected[seen.report.written_slots] = 0
    seen.assert_noted(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_at_both_replayed_and_newcomers_are_measured(kind: str) -> None:
    seen = first_with_a_replacement("both", kind)
    expected = seen.expected
    replayed = seen.report.replayed_slots
    expected[replayed] = seen.of_stored()[replayed]
    expected[seen.report.written_slots] = seen.of_newcomers()
    seen.assert_noted(expected)


@pytest.mark.parametrize("iterations", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_at_all_every_slot_is_measured_around_a_step_that_replaces(
    kind: str, iterations: int
) -> None:
    seen = first_with_a_replacement("all", kind, iterations=iterations)
    expected = seen.of_stored()
    expected[seen.report.written_slots] = seen.of_newcomers()
    seen.assert_noted(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_at_all_a_step_that_replaces_nothing_measures_newcomers_only(kind: str) -> None:
    seen = Observed("all", kind, steps=1)
    assert not seen.was_full
    expected = seen.expected
    expected[seen.report.written_slots] = seen.of_newcomers()
    seen.assert_noted(expected)


@pytest.mark.parametrize("within_class", [False, True])
@pytest.mark.parametrize("timing", ["never", "insertion", "replay", "both", "all"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_first_batch_larger_than_the_memory_fills_it(
    kind: str, timing: str, within_class: bool
) -> None:
    world = learner("er-c", kind, margins=timing, within_class=within_class, capacity=4, replay=4)
    first, second = stream(2)
    report = world.observe(*first)
    assert sorted(report.written_slots.tolist()) == [0, 1, 2, 3]
    assert world.observe(*second).replayed_slots.numel() == 4


def test_with_several_updates_a_replay_is_measured_around_its_own_update() -> None:
    """The last update that replayed a slot says its increment; learning rate 0 says it is 0."""
    world = learner("er-c", margins="replay", iterations=2, replay=2, capacity=10)
    run(world, stream(3))
    for group in world.optimizer.param_groups:
        group["lr"] = 0.0
    report = world.observe(*stream(1, seed=3)[0])
    assert world.memory is not None
    for update in report.updates:
        assert not world.memory.margin_increment[update.replayed_slots].any()


class Comparing(Storage):
    """Fills the memory, then compares every newcomer with two batches of slots."""

    slots = torch.tensor([[0, 3, 5], [4, 1, 2]])

    def __init__(self) -> None:
        self.answers: list[tuple[Tensor, Tensor]] = []

    @override
    def place(
        self, labels: Tensor, memory: Memory, evidence: Evidence, rng: torch.Generator
    ) -> Placement:
        if memory.is_empty:
            return Placement(torch.arange(len(labels)))
        self.answers.append(evidence.cosines(self.slots))
        return Placement(torch.full((len(labels),), -1))


def gradient(net: nn.Module, inputs: Tensor, labels: Tensor) -> Tensor:
    judge = copy.deepcopy(net).eval()
    F.cross_entropy(judge(inputs), labels).backward()  # type: ignore[no-untyped-call]
    return torch.cat([p.grad.flatten() for p in judge.parameters() if p.grad is not None])


@pytest.mark.parametrize("passes", ["joint", "separate"])
@pytest.mark.parametrize("kind", KINDS)
def test_cosines_are_those_of_gradients_taken_one_by_one_after_the_step(
    kind: str, passes: str
) -> None:
    net, policy = model(kind, dtype=DOUBLE), Comparing()
    world = Learner(
        net,
        sgd(net),
        memory=Memory(10),
        storage=policy,
        passes=passes,  # type: ignore[arg-type]
    )
    run(world, stream(1, size=6, dtype=DOUBLE))
    inputs, labels = stream(1, seed=2, dtype=DOUBLE)[0]
    world.observe(inputs, labels)
    stored, kept = contents(world)
    batches = [gradient(net, stored[slots], kept[slots]) for slots in Comparing.slots]
    newcomers = [gradient(net, inputs[i : i + 1], labels[i : i + 1]) for i in range(len(labels))]
    together = gradient(net, inputs, labels)
    ((each, mean),) = policy.answers
    for row, newcomer in zip(each, newcomers, strict=True):
        expected = torch.stack([F.cosine_similarity(newcomer, batch, 0) for batch in batches])
        torch.testing.assert_close(row, expected)
    expected = torch.stack([F.cosine_similarity(together, batch, 0) for batch in batches])
    torch.testing.assert_close(mean, expected)


class Greedy(Storage):
    """Asks for margins it never declared."""

    @override
    def place(
        self, labels: Tensor, memory: Memory, evidence: Evidence, rng: torch.Generator
    ) -> Placement:
        evidence.margin_increments()
        return Placement(torch.arange(len(labels)))


def test_a_storage_that_did_not_declare_margins_is_told_to() -> None:
    net = model()
    world = Learner(net, sgd(net), memory=Memory(10), storage=Greedy())
    with pytest.raises(ValueError, match="set `margins` to 'insertion', 'both' or 'all'"):
        run(world, stream(1))


class Opposing(Storage):
    """Fills the memory, then asks about batches of slots in both orders."""

    slots = torch.arange(12).reshape(6, 2)

    def __init__(self) -> None:
        self.opposed: list[bool] = []
        self.after: list[tuple[Tensor, Tensor]] = []
        self.fresh: list[tuple[Tensor, Tensor]] = []

    @override
    def place(
        self, labels: Tensor, memory: Memory, evidence: Evidence, rng: torch.Generator
    ) -> Placement:
        if not memory.is_full:
            first = len(memory)
            return Placement(torch.arange(first, first + len(labels)))
        self.opposed.append(evidence.point_against(self.slots))
        self.after.append(evidence.cosines(self.slots))
        self.fresh.append(evidence.cosines(self.slots.clone()))
        return Placement(torch.full((len(labels),), -1))


@pytest.mark.parametrize("quickly_done", [0, 10_000_000])
@pytest.mark.parametrize("kind", KINDS)
def test_newcomers_point_against_batches_if_all_cosines_of_their_mean_are_negative(
    kind: str, quickly_done: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.learner.evidence._QUICKLY_DONE", quickly_done)
    net, policy = model(kind, dtype=DOUBLE), Opposing()
    world = Learner(net, sgd(net, lr=0.5), memory=Memory(12), storage=policy)
    rng = torch.Generator().manual_seed(5)
    for step in range(40):  # labels of one class at a time make gradients oppose now and then
        labels = torch.full((4,), step % 4 if step >= 3 else 0)
        world.observe(torch.rand(4, 1, 4, 4, dtype=DOUBLE, generator=rng), labels)
    for opposed, (_, together) in zip(policy.opposed, policy.fresh, strict=True):
        assert opposed == bool((together < 0).all())
    assert len(set(policy.opposed)) == 2
    for after, fresh in zip(policy.after, policy.fresh, strict=True):
        torch.testing.assert_close(after[0], fresh[0], rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(after[1], fresh[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("iterations", [1, 2])
@pytest.mark.parametrize("timing", ["insertion", "replay", "both", "all"])
@pytest.mark.parametrize("kind", KINDS)
def test_augmentation_does_not_pass_for_learning(kind: str, timing: str, iterations: int) -> None:
    def augmented(inputs: object) -> Tensor:
        assert isinstance(inputs, Tensor)
        return inputs + torch.randn_like(inputs)

    world = learner(
        "er-c",
        kind,
        optimizer=lambda net: sgd(net, lr=0.0),
        capacity=10,
        margins=timing,
        iterations=iterations,
        transform=augmented,
    )
    if kind == "batch norm":  # its statistics move without any learning
        world.model[1].momentum = 0.0  # type: ignore[index]
    assert world.memory is not None
    for batch in stream(6):
        world.observe(*batch)
        assert not world.memory.margin_increment.any()
