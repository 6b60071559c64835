"""Looking leaves no trace: `predict`, and the passes that score for retrieval and storage."""

import pytest
import torch
from tests.unit.learner.support import (
    MODELS,
    differences,
    fingerprint,
    learner,
    model,
    run,
    sgd,
    stream,
)
from torch import Tensor, nn
from typing_extensions import override

from recollect import METHODS, Learner
from recollect.memory import Memory
from recollect.retrieval import Probe, Retrieval
from recollect.storage import Evidence, Placement, Storage


@pytest.mark.parametrize("batch_size", [None, 1, 3, 100])
@pytest.mark.parametrize("kind", MODELS)
def test_predict_leaves_everything_as_it_was(kind: str, batch_size: int | None) -> None:
    world = run(learner("er-pc-mir", kind), stream(4))
    before = fingerprint(world)
    world.predict(stream(1, seed=1, size=7)[0][0], batch_size=batch_size)
    assert differences(before, fingerprint(world)) == []


@pytest.mark.parametrize("kind", MODELS)
def test_predict_leaves_every_module_in_its_own_mode(kind: str) -> None:
    world = learner("er", kind)
    world.model[1].eval()  # type: ignore[index]
    modes = [module.training for module in world.model.modules()]
    world.predict(torch.zeros(2, 1, 4, 4))
    assert [module.training for module in world.model.modules()] == modes
    assert not all(modes)


def test_predict_that_fails_leaves_every_module_in_its_own_mode() -> None:
    world = run(learner("er", "batch norm"), stream(2))
    before = fingerprint(world)
    with pytest.raises(ValueError, match=r"shape \(2, 9, 4, 4\).*layer `0`, Conv2d.*1 channels"):
        world.predict(torch.zeros(2, 9, 4, 4))
    assert differences(before, fingerprint(world)) == []


@pytest.mark.parametrize("kind", MODELS)
def test_predict_gives_the_models_outputs_in_evaluation_mode(kind: str) -> None:
    world = run(learner("er", kind), stream(4))
    inputs = stream(1, seed=1)[0][0]
    found = world.predict(inputs)
    world.model.eval()
    assert torch.equal(found, world.model(inputs))
    assert not found.requires_grad


def test_predict_in_parts_equals_predict_at_once() -> None:
    world = run(learner("er", "batch norm", dtype=torch.float64), stream(4, dtype=torch.float64))
    inputs = stream(1, seed=1, size=7, dtype=torch.float64)[0][0]
    torch.testing.assert_close(world.predict(inputs, batch_size=3), world.predict(inputs))


def test_predict_takes_no_examples_at_all() -> None:
    assert learner("er").predict(torch.zeros(0, 1, 4, 4)).shape == (0, 4)


@pytest.mark.parametrize("batch_size", [0, -1])
def test_predict_refuses_a_batch_size_below_one(batch_size: int) -> None:
    with pytest.raises(ValueError, match="`batch_size` is"):
        learner("er").predict(torch.zeros(5, 1, 4, 4), batch_size=batch_size)


@pytest.mark.parametrize("name", METHODS)
def test_predicting_between_steps_changes_nothing_that_follows(name: str) -> None:
    looked, twin = (learner(name, "dropout") for _ in range(2))
    for inputs, labels in stream(5):
        if looked.step or not looked.predictor.needs_memory:
            looked.predict(inputs)
        looked.observe(inputs, labels)
        twin.observe(inputs, labels)
    assert differences(fingerprint(looked), fingerprint(twin)) == []


class Curious(Retrieval):
    """Replays nothing, after asking for everything."""

    replay = 1

    def __init__(self) -> None:
        self.looked: list[tuple[list[str], Tensor]] = []
        self.learner: Learner | None = None

    @override
    def select(self, memory: Memory, probe: Probe, rng: torch.Generator) -> Tensor:
        assert self.learner is not None
        slots = torch.arange(len(memory))
        # The incoming pass behind the first question may be the training pass itself, which draws.
        probe.losses_after(slots)
        before = fingerprint(self.learner)
        after = probe.losses_after(slots)
        rise = after - probe.losses_before(slots)
        self.looked.append((differences(before, fingerprint(self.learner)), rise))
        return slots[:0]


@pytest.mark.parametrize("kind", MODELS)
def test_a_virtual_step_leaves_no_trace(kind: str) -> None:
    net, policy = model(kind), Curious()
    world = Learner(net, sgd(net, momentum=0.9), memory=Memory(9), retrieval=policy)
    policy.learner = world
    run(world, stream(3))
    assert len(policy.looked) == 2
    for changed, rise in policy.looked:
        assert changed == []
        assert bool((rise != 0).all())


@pytest.mark.parametrize("kind", MODELS)
def test_losses_before_and_after_see_the_same_dropout(kind: str) -> None:
    net, policy = model(kind), Curious()
    world = Learner(net, sgd(net, lr=0.0), memory=Memory(9), retrieval=policy)
    policy.learner = world
    run(world, stream(3))
    assert len(policy.looked) == 2
    assert not any(rise.any() for _, rise in policy.looked)


def augmented(inputs: object) -> Tensor:
    assert isinstance(inputs, Tensor)
    return inputs + 0.5 * torch.randn_like(inputs)


@pytest.mark.parametrize("kind", MODELS)
def test_losses_before_and_after_see_the_same_augmentation(kind: str) -> None:
    net, policy = model(kind), Curious()
    world = Learner(net, sgd(net, lr=0.0), memory=Memory(9), retrieval=policy, transform=augmented)
    policy.learner = world
    run(world, stream(3))
    assert len(policy.looked) == 2
    for changed, rise in policy.looked:
        assert changed == []
        assert not rise.any()


class AsksBeforeFirst(Retrieval):
    """Replays nothing, after asking in the order of time."""

    replay = 1

    def __init__(self) -> None:
        self.rises: list[Tensor] = []

    @override
    def select(self, memory: Memory, probe: Probe, rng: torch.Generator) -> Tensor:
        slots = torch.arange(len(memory))
        before = probe.losses_before(slots)
        self.rises.append(probe.losses_after(slots) - before)
        return slots[:0]


@pytest.mark.parametrize("kind", MODELS)
def test_the_order_of_questions_does_not_matter_to_what_is_drawn(kind: str) -> None:
    net, policy = model(kind), AsksBeforeFirst()
    run(
        Learner(net, sgd(net, lr=0.0), memory=Memory(9), retrieval=policy, transform=augmented),
        stream(3),
    )
    assert len(policy.rises) == 2
    assert not any(rise.any() for rise in policy.rises)


@pytest.mark.parametrize("kind", MODELS)
def test_looking_draws_no_augmentation_from_what_follows(kind: str) -> None:
    net, policy = model(kind), CuriousStorage()
    world = Learner(net, sgd(net), memory=Memory(10), storage=policy, transform=augmented)
    policy.learner = world
    run(world, stream(3))
    assert policy.changed == []
    assert policy.times == 2


class CuriousStorage(Storage):
    """Places nothing, after asking for everything."""

    margins = "all"

    def __init__(self) -> None:
        self.changed: list[str] = []
        self.learner: Learner | None = None
        self.times = 0

    @override
    def place(
        self, labels: Tensor, memory: Memory, evidence: Evidence, rng: torch.Generator
    ) -> Placement:
        assert self.learner is not None
        if memory.is_empty:
            return Placement(torch.arange(len(labels)))
        before = fingerprint(self.learner)
        evidence.margin_increments()
        evidence.cosines(torch.arange(4).reshape(2, 2))
        self.changed += differences(before, fingerprint(self.learner))
        self.times += 1
        return Placement(torch.full((len(labels),), -1))


@pytest.mark.parametrize("kind", MODELS)
def test_margins_and_cosines_leave_no_trace(kind: str) -> None:
    net, policy = model(kind), CuriousStorage()
    world = Learner(net, sgd(net, momentum=0.9), memory=Memory(10), storage=policy)
    policy.learner = world
    run(world, stream(3))
    assert policy.changed == []
    assert policy.times == 2


class Averaging(nn.Module):
    """Keeps statistics of its own as new tensors, also in evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.body = model()
        self.register_buffer("calls", torch.zeros(()))
        self.calls: Tensor

    @override
    def forward(self, inputs: Tensor) -> Tensor:
        self.calls = self.calls + 1
        return self.body(inputs)


def test_predict_puts_back_buffers_that_the_model_replaces() -> None:
    net = Averaging()
    world = Learner(net, sgd(net))
    world.predict(torch.zeros(2, 1, 4, 4))
    assert float(net.calls) == 0
