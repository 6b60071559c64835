"""What `observe` does to the model, against the same thing written out slowly, in float64."""

import copy
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import pytest
import torch
from tests.unit.learner.support import (
    CAPACITY,
    CLASSES,
    MODELS,
    OPTIONS,
    REPLAY,
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
from torch.optim.optimizer import register_optimizer_step_post_hook
from typing_extensions import override

from recollect import Learner, Memory, method
from recollect.models import seeded
from recollect.retrieval import MaximallyInterfered
from recollect.rules import PrincipalDirection, Rule
from recollect.storage import Reservoir

DOUBLE = torch.float64
Optimize = Callable[[nn.Module], torch.optim.Optimizer]
LiteralUpdate = Callable[[nn.Module, torch.optim.Optimizer, Batch, Batch], None]


def momentum(net: nn.Module) -> torch.optim.Optimizer:
    return sgd(net, momentum=0.9, weight_decay=0.01, nesterov=True)


def adam(net: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=0.01)


def two_groups(net: nn.Module) -> torch.optim.Optimizer:
    first, *rest = net.parameters()
    groups: list[dict[str, Any]] = [{"params": [first], "lr": 0.3}, {"params": rest}]
    return torch.optim.SGD(groups, lr=0.05)


OPTIMIZERS: dict[str, Optimize] = {
    "sgd": sgd,
    "sgd, momentum": momentum,
    "adam": adam,
    "two groups": two_groups,
}


def follow(
    world: Learner, optimize: Optimize, batches: Sequence[Batch], update: LiteralUpdate
) -> None:
    """Run `world` and, on a copy of its model, the literal update with the same slots."""
    twin = copy.deepcopy(world.model)
    optimizer = optimize(twin)
    for batch in batches:
        inputs, labels = contents(world)
        report = world.observe(*batch)
        for done in report.updates:
            slots = done.replayed_slots
            update(twin, optimizer, batch, (inputs[slots], labels[slots]))
    assert_same_state(world.model, twin)


def assert_same_state(first: nn.Module, second: nn.Module) -> None:
    torch.testing.assert_close(first.state_dict(), second.state_dict(), rtol=1e-8, atol=1e-10)


def mean_loss(net: nn.Module, batch: Batch) -> Tensor:
    inputs, labels = batch
    return F.cross_entropy(net(inputs), labels)


# --- the sum: ER ----------------------------------------------------------------------------------


def two_passes(
    net: nn.Module, optimizer: torch.optim.Optimizer, incoming: Batch, replayed: Batch
) -> None:
    optimizer.zero_grad()
    mean_loss(net, incoming).backward()  # type: ignore[no-untyped-call]
    if len(replayed[1]):
        mean_loss(net, replayed).backward()  # type: ignore[no-untyped-call]
    optimizer.step()


def one_pass(
    net: nn.Module, optimizer: torch.optim.Optimizer, incoming: Batch, replayed: Batch
) -> None:
    if not len(replayed[1]):
        two_passes(net, optimizer, incoming, replayed)
        return
    optimizer.zero_grad()
    count = len(incoming[1])
    logits = net(torch.cat((incoming[0], replayed[0])))
    first = F.cross_entropy(logits[:count], incoming[1])
    second = F.cross_entropy(logits[count:], replayed[1])
    (first + second).backward()  # type: ignore[no-untyped-call]
    optimizer.step()


@pytest.mark.parametrize("optimize", OPTIMIZERS.values(), ids=OPTIMIZERS)
@pytest.mark.parametrize("passes", ["joint", "separate"])
@pytest.mark.parametrize("name", ["er", "er-mir", "er-c", "er-cb", "gss"])
def test_replay_by_the_sum_equals_a_plain_loop(name: str, passes: str, optimize: Optimize) -> None:
    world = learner(name, dtype=DOUBLE, optimizer=optimize, passes=passes)
    follow(world, optimize, stream(8, dtype=DOUBLE), two_passes)


def test_without_a_memory_it_is_plain_training() -> None:
    world = learner("van", "batch norm", dtype=DOUBLE, optimizer=momentum)
    follow(world, momentum, stream(8, dtype=DOUBLE), two_passes)


@pytest.mark.parametrize("name", ["er", "er-mir", "er-c", "gss"])
@pytest.mark.parametrize(("passes", "update"), [("joint", one_pass), ("separate", two_passes)])
def test_batch_norm_sees_one_joint_batch_or_two(
    name: str, passes: str, update: LiteralUpdate
) -> None:
    world = learner(name, "batch norm", dtype=DOUBLE, passes=passes)
    follow(world, sgd, stream(8, dtype=DOUBLE), update)


@pytest.mark.parametrize("name", ["er", "er-p", "er-mir", "er-pc-mir", "a-gem"])
def test_without_batch_norm_joint_and_separate_passes_agree(name: str) -> None:
    joint, separate = (
        run(learner(name, dtype=DOUBLE, passes=passes), stream(8, dtype=DOUBLE))
        for passes in ("joint", "separate")
    )
    assert_same_state(joint.model, separate.model)


@pytest.mark.parametrize("name", ["er", "er-p", "er-mir", "er-pc-mir", "a-gem"])
def test_with_batch_norm_joint_and_separate_passes_are_two_methods(name: str) -> None:
    joint, separate = (
        run(learner(name, "batch norm", dtype=DOUBLE, passes=passes), stream(8, dtype=DOUBLE))
        for passes in ("joint", "separate")
    )
    first, second = (world.model.state_dict()["0.weight"] for world in (joint, separate))
    assert not torch.allclose(first, second, rtol=1e-3)


@pytest.mark.parametrize("name", ["er", "er-p", "er-mir", "er-pc-mir", "a-gem"])
def test_with_batch_norm_in_evaluation_mode_joint_and_separate_passes_agree(name: str) -> None:
    worlds = []
    for passes in ("joint", "separate"):
        world = learner(name, "batch norm", dtype=DOUBLE, passes=passes)
        next(m for m in world.model.modules() if isinstance(m, nn.BatchNorm2d)).eval()
        worlds.append(run(world, stream(8, dtype=DOUBLE)))
    assert_same_state(worlds[0].model, worlds[1].model)


@pytest.mark.parametrize("kind", ["mlp", "batch norm"])
@pytest.mark.parametrize("name", ["er", "er-mir"])
def test_three_iterations_are_three_updates_each_with_slots_of_its_own(
    name: str, kind: str
) -> None:
    world = learner(name, kind, dtype=DOUBLE, optimizer=momentum, iterations=3)
    follow(world, momentum, stream(6, dtype=DOUBLE), one_pass)
    last = world.observe(*stream(1, seed=7, dtype=DOUBLE)[0])
    chosen = {tuple(update.replayed_slots.tolist()) for update in last.updates}
    assert (len(last.updates), len(chosen)) == (3, 3)


def test_the_memory_counts_every_update_and_every_replay() -> None:
    world = learner("er", iterations=3)
    run(world, stream(2, size=6))  # the memory is full, and the first step replayed nothing
    memory = world.memory
    assert memory is not None
    assert (memory.clock, int(memory.times_replayed.sum())) == (6, 3 * REPLAY)
    assert memory.ages().tolist() == [6 - 3 + 1] * 6 + [1] * 6


# --- the principal direction: ER-P ----------------------------------------------------------------


def flat_gradient(net: nn.Module, loss: Tensor) -> Tensor:
    found = torch.autograd.grad(
        loss, list(net.parameters()), retain_graph=True, allow_unused=True, materialize_grads=True
    )
    return torch.cat([gradient.flatten() for gradient in found])


def principal_direction(
    incoming: Tensor, replayed: Sequence[Tensor], step_size: float, norm_floor: float, floor: float
) -> Tensor:
    """Eq. 12, w = g - lambda grad f(g), term by term; |g| below its floor is a constant of f."""
    length = incoming.norm()
    descent = torch.zeros_like(incoming)
    for gradient in replayed:
        pull = torch.sigmoid(gradient.norm()) / gradient.norm().clamp_min(norm_floor)
        if length > floor:
            along = (incoming @ gradient) / length**3 * incoming
            descent += pull * (gradient / length - along)
        else:
            descent += pull * gradient / floor
    return incoming + step_size * descent


def step_along(net: nn.Module, optimizer: torch.optim.Optimizer, target: Tensor) -> None:
    parameters = list(net.parameters())
    parts = torch.split(target, [parameter.numel() for parameter in parameters])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.grad = part.reshape(parameter.shape)
    optimizer.step()


def principal_update(*, floor: float, groups: int | None = None) -> LiteralUpdate:
    def update(
        net: nn.Module, optimizer: torch.optim.Optimizer, incoming: Batch, replayed: Batch
    ) -> None:
        gradient = flat_gradient(net, mean_loss(net, incoming))
        inputs, labels = replayed
        count = len(labels) if groups is None else min(groups, len(labels))
        parts = torch.arange(len(labels)).tensor_split(count) if count else []
        others = [flat_gradient(net, mean_loss(net, (inputs[i], labels[i]))) for i in parts]
        step_along(net, optimizer, principal_direction(gradient, others, 2.0, 0.7, floor))

    return update


@pytest.mark.parametrize("optimize", OPTIMIZERS.values(), ids=OPTIMIZERS)
@pytest.mark.parametrize("floor", [1e-6, 100.0], ids=["no floor", "below the floor"])
@pytest.mark.parametrize("passes", ["joint", "separate"])
def test_principal_direction_equals_one_gradient_at_a_time(
    passes: str, floor: float, optimize: Optimize
) -> None:
    options: dict[str, Any] = {"step_size": 2.0, "norm_floor": 0.7, "target_floor": floor}
    world = learner("er-p", dtype=DOUBLE, optimizer=optimize, passes=passes, **options)
    follow(world, optimize, stream(8, dtype=DOUBLE), principal_update(floor=floor))


@pytest.mark.parametrize("passes", ["joint", "separate"])
def test_principal_direction_takes_batches_of_any_size(passes: str) -> None:
    options: dict[str, Any] = {"step_size": 2.0, "norm_floor": 0.7, "target_floor": 0.5}
    world = learner("er-p", dtype=DOUBLE, passes=passes, **options)
    sizes = (1, 7, 2, 5, 1, 12, 3)
    batches = [stream(1, seed=n, size=size, dtype=DOUBLE)[0] for n, size in enumerate(sizes)]
    follow(world, sgd, batches, principal_update(floor=0.5))


class Optional(nn.Module):
    """A layer in the middle that can be left out, as stochastic depth does."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.middle, self.last = (
            nn.Linear(16, 8),
            nn.Linear(8, 8),
            nn.Linear(8, CLASSES),
        )
        self.uses_middle = False

    @override
    def forward(self, inputs: Tensor) -> Tensor:
        hidden = torch.tanh(self.first(inputs.flatten(1)))
        if self.uses_middle:
            hidden = torch.tanh(self.middle(hidden))
        return self.last(hidden)


@pytest.mark.parametrize("first_with_it", [True, False], ids=["left out", "put in"])
def test_a_layer_may_be_left_out_of_some_steps(first_with_it: bool) -> None:
    """Gradients of a layer that rejoins later are measured; `None` counts as zero beside others."""
    net = seeded(Optional, 0).double()
    assert isinstance(net, Optional)
    net.uses_middle = first_with_it
    rule = PrincipalDirection(step_size=2.0, norm_floor=0.7, target_floor=0.5)
    world = Learner(net, sgd(net), memory=Memory(CAPACITY), rule=rule)
    batches = stream(6, dtype=DOUBLE)
    run(world, batches[:3])
    net.uses_middle = not first_with_it
    follow(world, sgd, batches[3:], principal_update(floor=0.5))


@pytest.mark.parametrize("kind", ["mlp", "batch norm"])
@pytest.mark.parametrize("groups", [1, 2, 3, 9])
def test_grouped_passes_equal_one_pass_and_one_gradient_a_group(groups: int, kind: str) -> None:
    options: dict[str, Any] = {"step_size": 2.0, "norm_floor": 0.7, "target_floor": 0.5}
    world = learner(
        "er-p", kind, dtype=DOUBLE, optimizer=momentum, groups=groups, passes="grouped", **options
    )
    follow(world, momentum, stream(8, dtype=DOUBLE), principal_update(floor=0.5, groups=groups))


@pytest.mark.parametrize("passes", ["joint", "separate"])
def test_without_batch_norm_groups_need_no_passes_of_their_own(passes: str) -> None:
    own, shared = (
        run(learner("er-p", dtype=DOUBLE, groups=2, passes=how), stream(8, dtype=DOUBLE))
        for how in ("grouped", passes)
    )
    assert_same_state(own.model, shared.model)


def test_a_step_size_of_zero_learns_from_the_incoming_batch_alone() -> None:
    world = run(learner("er-p", dtype=DOUBLE, step_size=0.0), stream(8, dtype=DOUBLE))
    plain = run(learner("van", dtype=DOUBLE), stream(8, dtype=DOUBLE))
    assert_same_state(world.model, plain.model)


def test_a_gem_equals_the_projection_written_out() -> None:
    def update(
        net: nn.Module, optimizer: torch.optim.Optimizer, incoming: Batch, replayed: Batch
    ) -> None:
        target = flat_gradient(net, mean_loss(net, incoming))
        if len(replayed[1]):
            mean = flat_gradient(net, mean_loss(net, replayed))
            if target @ mean < 0:
                projected.append(True)
                target = target - (target @ mean) / (mean @ mean) * mean
        step_along(net, optimizer, target)

    projected: list[bool] = []
    follow(learner("a-gem", dtype=DOUBLE), sgd, stream(20, dtype=DOUBLE), update)
    assert projected


class MeasuredSum(Rule):
    """The plain sum by way of the measured gradients."""

    @override
    def __call__(self, gram: Tensor) -> Tensor:
        count = len(gram) - 1
        return torch.tensor([1.0] + [1 / count] * count, dtype=gram.dtype)


@pytest.mark.parametrize("passes", ["joint", "separate"])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", ["er", "er-mir", "er-c"])
def test_measured_gradients_add_up_to_the_plain_sum(
    name: str, kind: str, passes: Literal["joint", "separate"]
) -> None:
    plain = learner(name, kind, dtype=DOUBLE, passes=passes)
    net, whole = model(kind, dtype=DOUBLE), learner(name, kind)
    measured = Learner(
        net,
        sgd(net),
        memory=whole.memory,
        storage=whole.storage,
        retrieval=whole.retrieval,
        rule=MeasuredSum(),
        passes=passes,
    )
    batches = stream(8, dtype=DOUBLE)
    assert_same_state(run(plain, batches).model, run(measured, batches).model)


def test_the_report_holds_the_inner_products_and_weights_of_the_update() -> None:
    world = run(learner("er-p", dtype=DOUBLE, measure_all=True), stream(4, dtype=DOUBLE))
    before, (inputs, labels) = copy.deepcopy(world.model), contents(world)
    batch = stream(1, seed=8, dtype=DOUBLE)[0]
    (update,) = world.observe(*batch).updates
    gradients = [flat_gradient(before, mean_loss(before, batch))]
    for slot in update.replayed_slots:
        one = (inputs[slot : slot + 1], labels[slot : slot + 1])
        gradients.append(flat_gradient(before, mean_loss(before, one)))
    rows = torch.stack(gradients)
    assert update.gram is not None
    assert update.weights is not None
    torch.testing.assert_close(update.gram, rows @ rows.T)
    assert update.incoming_norm == pytest.approx(float(rows[0].norm()))
    torch.testing.assert_close(update.replayed_norms, rows[1:].norm(dim=1))
    torch.testing.assert_close(update.replayed_products, rows[1:] @ rows[0])
    assert update.target_norm == pytest.approx(float((update.weights @ rows).norm()))


def test_the_report_holds_losses_and_outputs_from_before_the_update() -> None:
    world = run(learner("er", dtype=DOUBLE), stream(4, dtype=DOUBLE))
    before, (inputs, labels) = copy.deepcopy(world.model), contents(world)
    batch = stream(1, seed=8, dtype=DOUBLE)[0]
    report = world.observe(*batch)
    (update,) = report.updates
    slots = update.replayed_slots
    logits = before(batch[0])
    losses = F.cross_entropy(logits, batch[1], reduction="none")
    replayed = F.cross_entropy(before(inputs[slots]), labels[slots], reduction="none")
    torch.testing.assert_close(update.incoming_outputs, logits.detach())
    torch.testing.assert_close(update.incoming_losses, losses.detach())
    torch.testing.assert_close(update.replayed_losses, replayed.detach())
    assert report.loss == pytest.approx(float(losses.detach().mean()))
    assert (report.step, report.seen) == (5, 25)


# --- maximally interfered retrieval ---------------------------------------------------------------


def interference(net: nn.Module, optimize: Optimize, incoming: Batch, stored: Batch) -> Tensor:
    """Rise of each stored example's loss under a real step of gradient descent on a copy."""
    inputs, labels = stored
    before = F.cross_entropy(copy.deepcopy(net)(inputs), labels, reduction="none")
    moved = copy.deepcopy(net)
    gradients = torch.autograd.grad(mean_loss(moved, incoming), list(moved.parameters()))
    rates = {id(p): group["lr"] for group in optimize(moved).param_groups for p in group["params"]}
    with torch.no_grad():
        for parameter, gradient in zip(moved.parameters(), gradients, strict=True):
            parameter.sub_(rates[id(parameter)] * gradient)
    return F.cross_entropy(moved(inputs), labels, reduction="none") - before


@pytest.mark.parametrize("optimize", OPTIMIZERS.values(), ids=OPTIMIZERS)
@pytest.mark.parametrize("passes", ["joint", "separate"])
@pytest.mark.parametrize("kind", ["mlp", "batch norm"])
@pytest.mark.parametrize("rule", [None, PrincipalDirection()], ids=["sum", "principal"])
def test_the_most_interfered_slots_are_those_of_brute_force(
    kind: str, passes: Literal["joint", "separate"], optimize: Optimize, rule: Any
) -> None:
    net = model(kind, dtype=DOUBLE)
    world = Learner(
        net,
        optimize(net),
        memory=Memory(CAPACITY),
        retrieval=MaximallyInterfered(REPLAY, candidates=CAPACITY),
        rule=rule,
        passes=passes,
    )
    batches = stream(8, dtype=DOUBLE)
    run(world, batches[:3])
    for batch in batches[3:]:
        rise = interference(net, optimize, batch, contents(world))
        chosen = world.observe(*batch).replayed_slots
        assert chosen.tolist() == rise.topk(REPLAY).indices.tolist()


# --- other models and inputs ----------------------------------------------------------------------


class Pair(nn.Module):
    """A model of two inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Flatten(), nn.Linear(16, 12), nn.Tanh(), nn.Linear(12, CLASSES)
        )

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return self.body(torch.cat((left, right), dim=-1))


@pytest.mark.parametrize("name", ["er", "er-p", "er-c", "er-pc-mir", "gss"])
@pytest.mark.parametrize(
    "split",
    [
        lambda x: (x[..., :2], x[..., 2:]),
        lambda x: [x[..., :2], x[..., 2:]],
        lambda x: {"left": x[..., :2], "right": x[..., 2:]},
        lambda x: {"right": x[..., 2:], "left": x[..., :2]},
    ],
    ids=["tuple", "list", "dict", "dict, other order"],
)
def test_several_inputs_are_learnt_like_one(name: str, split: Callable[[Tensor], object]) -> None:
    def build(make: Callable[[], nn.Module]) -> Learner:
        net, whole = seeded(make, 0), learner(name)
        return Learner(
            net,
            sgd(net),
            memory=whole.memory,
            storage=whole.storage,
            retrieval=whole.retrieval,
            rule=whole.rule,
        )

    one, several = build(lambda: Pair().body), build(Pair)
    for inputs, labels in stream(6):
        one.observe(inputs, labels)
        several.observe(split(inputs), labels)
    probe = stream(1, seed=4)[0][0]
    assert torch.equal(one.predict(probe), several.predict(split(probe)))
    assert several.memory is not None
    kept, _ = several.memory.read(torch.arange(CAPACITY))
    assert type(kept) is type(split(probe))


@pytest.mark.parametrize("name", ["er", "er-p", "er-c", "er-pc-mir", "gss"])
def test_a_transform_keeps_bytes_in_memory_and_floats_in_the_model(name: str) -> None:
    def scaled(images: object) -> Tensor:
        assert isinstance(images, Tensor)
        return images.float() / 255

    small, large = learner(name, transform=scaled), learner(name)
    for inputs, labels in stream(6):
        images = (inputs * 40 + 128).clamp(0, 255).to(torch.uint8)
        small.observe(images, labels)
        large.observe(scaled(images), labels)
    assert_same_state(small.model, large.model)
    assert contents(small)[0].dtype == torch.uint8
    assert torch.equal(scaled(contents(small)[0]), contents(large)[0])


@pytest.mark.parametrize("name", ["er", "er-p", "er-pc-mir", "gss"])
@pytest.mark.parametrize("how", ["not in the optimizer", "requires no gradient"])
def test_frozen_parameters_stay_and_the_others_learn(name: str, how: str) -> None:
    def freeze(net: nn.Module) -> torch.optim.Optimizer:
        first, *rest = net.parameters()
        if how == "not in the optimizer":
            return torch.optim.SGD(rest, lr=0.1)
        first.requires_grad_(False)
        return sgd(net)

    world = learner(name, optimizer=freeze)
    first, *rest = (parameter.detach().clone() for parameter in world.model.parameters())
    run(world, stream(6))
    still, *moved = world.model.parameters()
    assert torch.equal(first, still)
    assert not any(map(torch.equal, rest, moved))


def test_replay_beside_frozen_parameters_equals_a_plain_loop() -> None:
    def last_only(net: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.SGD(list(net.parameters())[2:], lr=0.1)

    world = learner("er", dtype=DOUBLE, optimizer=last_only)
    follow(world, last_only, stream(8, dtype=DOUBLE), two_passes)


@pytest.mark.parametrize("name", ["er", "er-p", "er-mir", "a-gem", "gss"])
def test_regression_learns_with_every_part_that_needs_no_classes(name: str) -> None:
    net = seeded(lambda: nn.Linear(3, 2), 0)
    world = learner(name)
    world = Learner(
        net,
        sgd(net, lr=0.05),
        memory=Memory(CAPACITY),
        storage=world.storage,
        retrieval=world.retrieval,
        rule=PrincipalDirection(step_size=1.0) if name == "er-p" else world.rule,
        loss=lambda outputs, targets: (outputs - targets).square().mean(1),
    )
    rng = torch.Generator().manual_seed(0)
    truth = torch.randn(3, 2, generator=rng)
    losses = []
    for _ in range(60):
        inputs = torch.randn(5, 3, generator=rng)
        losses.append(world.observe(inputs, inputs @ truth).loss)
    assert sum(losses[-10:]) < 0.1 * sum(losses[:10])
    assert world.memory is not None
    assert world.memory.labels.shape == (CAPACITY, 2)


def test_regression_by_the_sum_equals_a_plain_loop() -> None:
    net = seeded(lambda: nn.Linear(3, 1), 0).double()
    twin = copy.deepcopy(net)
    optimizer = sgd(twin)
    world = Learner(net, sgd(net), memory=Memory(10), loss=lambda x, y: (x - y).square().mean(1))
    rng = torch.Generator().manual_seed(0)
    for _ in range(6):
        inputs = torch.randn(5, 3, generator=rng, dtype=DOUBLE)
        targets = inputs.sum(1, keepdim=True)
        stored, kept = contents(world)
        slots = world.observe(inputs, targets).replayed_slots
        optimizer.zero_grad()
        loss = F.mse_loss(twin(inputs), targets)
        if slots.numel():
            loss = loss + F.mse_loss(twin(stored[slots]), kept[slots])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    assert_same_state(net, twin)


@pytest.mark.parametrize("name", ["er-c", "er-pc", "er-pc-mir", "er-cb"])
def test_a_storage_that_needs_classes_says_so_when_it_gets_real_targets(name: str) -> None:
    world = learner(name, loss=lambda outputs, targets: (outputs - targets).square().mean(1))
    storage = type(world.storage).__name__
    with pytest.raises(TypeError, match=rf"dtype torch.float32, but {storage} needs classes"):
        world.observe(torch.zeros(2, 1, 4, 4), torch.zeros(2, CLASSES))


def test_a_learner_of_defaults_replays_ten_from_a_reservoir() -> None:
    net = model()
    world = Learner(net, sgd(net), memory=Memory(20))
    run(world, stream(3, size=10))
    assert isinstance(world.storage, Reservoir)
    assert len(world.observe(*stream(1)[0]).replayed_slots) == 10


class Features(NamedTuple):
    left: Tensor
    right: Tensor


def test_a_named_tuple_is_learnt_like_a_tuple() -> None:
    net = Pair()
    world = Learner(net, sgd(net), memory=Memory(CAPACITY))
    for inputs, labels in stream(3):
        world.observe(Features(inputs[..., :2], inputs[..., 2:]), labels)
    assert world.step == 3


class TwoHeads(nn.Module):
    """Answers with a tuple, which a loss of one's own may take."""

    def __init__(self) -> None:
        super().__init__()
        self.body = model()

    @override
    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.body(inputs)
        return logits, logits.square().mean(1)


@pytest.mark.parametrize("name", ["van", "er"])
def test_a_model_may_return_whatever_its_loss_takes(name: str) -> None:
    def loss(outputs: Any, labels: Tensor) -> Tensor:
        return F.cross_entropy(outputs[0], labels, reduction="none") + outputs[1]

    net = TwoHeads()
    world = Learner(net, sgd(net), memory=None if name == "van" else Memory(CAPACITY), loss=loss)
    assert run(world, stream(3)).step == 3


@pytest.mark.parametrize("name", ["er", "er-p", "gss"])
def test_the_memory_keeps_no_history_of_inputs_another_model_made(name: str) -> None:
    encoder, world = nn.Conv2d(1, 1, 1), learner(name)
    for inputs, labels in stream(4):
        world.observe(encoder(inputs), labels)
    assert not contents(world)[0].requires_grad


def test_what_the_caller_does_to_a_batch_afterwards_does_not_reach_the_memory() -> None:
    world = learner("er")
    inputs, labels = stream(1)[0]
    world.observe(inputs, labels)
    expected = inputs.clone()
    inputs.zero_()
    assert torch.equal(contents(world)[0], expected)


# --- optimizers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["van", "er", "er-p"])
def test_hooks_of_the_optimizer_are_called_once_an_update(name: str) -> None:
    world = learner(name, iterations=2)
    before: list[int] = []
    after: list[int] = []
    world.optimizer.register_step_pre_hook(lambda *_: before.append(1))
    world.optimizer.register_step_post_hook(lambda *_: after.append(1))
    run(world, stream(3))
    assert (len(before), len(after)) == (6, 6)


def test_hooks_of_all_optimizers_are_called_once_an_update() -> None:
    called: list[int] = []
    handle = register_optimizer_step_post_hook(lambda *_: called.append(1))
    try:
        run(learner("er"), stream(3))
    finally:
        handle.remove()
    assert len(called) == 3


def test_a_scheduler_sets_the_learning_rate_of_the_steps_that_follow() -> None:
    def halving(net: nn.Module) -> tuple[torch.optim.Optimizer, Any]:
        optimizer = sgd(net)
        return optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)

    net, twin = model(dtype=DOUBLE), model(dtype=DOUBLE)
    optimizer, scheduler = halving(net)
    world = Learner(net, optimizer)
    other, other_scheduler = halving(twin)
    for inputs, labels in stream(4, dtype=DOUBLE):
        world.observe(inputs, labels)
        scheduler.step()
        two_passes(twin, other, (inputs, labels), (inputs[:0], labels[:0]))
        other_scheduler.step()
    assert_same_state(net, twin)


@pytest.mark.parametrize("options", [{}, {"momentum": 0.9}, {"weight_decay": 0.1}, {"lr": 1}])
def test_a_step_has_the_bits_of_the_optimizers_own(options: dict[str, Any]) -> None:
    net, twin = model(), model()
    world, optimizer = Learner(net, sgd(net, **options)), sgd(twin, **options)
    for inputs, labels in stream(4):
        world.observe(inputs, labels)
        losses = F.cross_entropy(twin(inputs), labels, reduction="none")
        gradients = torch.autograd.grad(losses @ torch.full((5,), 0.2), list(twin.parameters()))
        for parameter, gradient in zip(twin.parameters(), gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
    assert all(map(torch.equal, net.parameters(), twin.parameters()))


@pytest.mark.parametrize("name", ["van", "er", "er-p"])
def test_a_parameter_frozen_on_the_way_stays_from_then_on(name: str) -> None:
    world = run(learner(name), stream(2))
    first, *rest = world.model.parameters()
    first.requires_grad_(False)
    before = [parameter.detach().clone() for parameter in (first, *rest)]
    run(world, stream(2, seed=1))
    assert torch.equal(first, before[0])
    assert not any(map(torch.equal, rest, before[1:]))


class SpareHead(nn.Module):
    """A model whose second head no pass uses."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.spare = model(), nn.Linear(2, 2)

    @override
    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.body(inputs)
        return logits


@pytest.mark.parametrize("name", ["er", "er-mir", "er-pc-mir", "gss"])
@pytest.mark.parametrize("passes", ["joint", "separate"])
def test_a_group_of_parameters_that_no_pass_uses_stays_as_it_is(name: str, passes: str) -> None:
    net, alone = SpareHead(), learner(name, passes=passes)
    before = [p.detach().clone() for p in net.spare.parameters()]
    groups = [{"params": net.spare.parameters()}, {"params": net.body.parameters()}]
    optimizer = torch.optim.SGD(groups, lr=0.1)
    small: dict[str, Any] = {"capacity": CAPACITY, "replay": REPLAY, **OPTIONS.get(name, {})}
    world = run(method(name, net, optimizer, passes=passes, **small), stream(6))
    assert all(torch.equal(a, b) for a, b in zip(net.spare.parameters(), before, strict=True))
    run(alone, stream(6))
    assert isinstance(world.model, SpareHead)
    torch.testing.assert_close(world.model.body.state_dict(), alone.model.state_dict())
