"""A model may be widened, and its parameters replaced, frozen or freed, between two steps."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.unit.learner.support import (
    CAPACITY,
    CLASSES,
    OPTIONS,
    REPLAY,
    Batch,
    differences,
    fingerprint,
    model,
    sgd,
    stream,
)
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from recollect import Learner, method
from recollect.models import seeded

WIDER = CLASSES + 2
METHODS_THAT_DIFFER = ["er", "er-p", "er-mir", "er-pc-mir", "gss"]


class Own(nn.Module):
    """A model of the user's own class, with a head to replace."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(16, 12), nn.Linear(12, CLASSES)

    @override
    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.body(inputs.flatten(1)).tanh())


def head_of(net: nn.Module) -> nn.Linear:
    *_, last = (module for module in net.modules() if isinstance(module, nn.Linear))
    return last


def wider(head: nn.Linear) -> nn.Linear:
    """Return a head with two more classes that says the same about the old ones."""
    widened = seeded(lambda: nn.Linear(head.in_features, WIDER), 5)
    assert isinstance(widened, nn.Linear)
    with torch.no_grad():
        widened.weight[:CLASSES], widened.bias[:CLASSES] = head.weight, head.bias
    return widened


def replace_layer(net: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    old = head_of(net)
    (owner, name), *_ = (
        (module, name)
        for module in net.modules()
        for name, child in module.named_children()
        if child is old
    )
    setattr(owner, name, wider(old))
    optimizer.add_param_group({"params": list(head_of(net).parameters())})


def replace_parameters(net: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Widen the layer that is there, and put its parameters where the old ones were held."""
    head = head_of(net)
    old, widened = dict(head.named_parameters()), wider(head)
    head.weight, head.bias, head.out_features = widened.weight, widened.bias, WIDER
    held = optimizer.param_groups[0]["params"]
    for name, parameter in old.items():
        place = next(i for i, p in enumerate(held) if p is parameter)
        held[place] = getattr(head, name)
        optimizer.state.pop(parameter, None)


WAYS: dict[str, Callable[[nn.Module, torch.optim.Optimizer], None]] = {
    "another layer": replace_layer,
    "other parameters": replace_parameters,
}
KINDS = ["mlp", "batch norm", "dropout", "own class"]


def build(name: str, kind: str, *, momentum: float = 0.0) -> Learner:
    net = seeded(Own, 0) if kind == "own class" else model(kind)
    options = {"capacity": CAPACITY, "replay": REPLAY, **OPTIONS.get(name, {})}
    return method(name, net, sgd(net, momentum=momentum), **options)


def of_more_classes(batches: list[Batch]) -> list[Batch]:
    return [(inputs, labels + 2) for inputs, labels in batches]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", METHODS_THAT_DIFFER)
def test_a_head_widened_in_mid_stream_is_trained(name: str, kind: str, way: str) -> None:
    world = build(name, kind)
    for batch in stream(3):
        world.observe(*batch)
    WAYS[way](world.model, world.optimizer)
    before = head_of(world.model).weight.detach().clone()
    for batch in of_more_classes(stream(3, seed=1)):
        report = world.observe(*batch)
    assert report.updates[0].outputs.shape[1] == WIDER
    assert not torch.equal(head_of(world.model).weight[CLASSES:], before[CLASSES:])


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_widened_in_mid_stream_is_asked_by_predict(kind: str) -> None:
    world = build("er", kind)
    inputs, labels = stream(1)[0]
    world.observe(inputs, labels)
    replace_layer(world.model, world.optimizer)
    found = world.predict(inputs)
    world.model.eval()
    assert found.shape[1] == WIDER
    assert torch.equal(found, world.model(inputs))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", METHODS_THAT_DIFFER)
def test_after_widening_it_goes_on_as_a_learner_built_with_the_wide_head(
    name: str, kind: str, way: str, tmp_path: Path
) -> None:
    world, other = build(name, kind, momentum=0.9), build(name, kind, momentum=0.9)
    for batch in stream(3):
        world.observe(*batch)
    WAYS[way](world.model, world.optimizer)
    world.save(tmp_path / "it")
    WAYS[way](other.model, other.optimizer)
    fresh = method(
        name,
        other.model,
        other.optimizer,
        **{"capacity": CAPACITY, "replay": REPLAY, **OPTIONS.get(name, {})},
    )
    fresh.load(tmp_path / "it")
    for batch in of_more_classes(stream(3, seed=1)):
        world.observe(*batch)
        fresh.observe(*batch)
    assert differences(fingerprint(world), fingerprint(fresh)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_that_fails_after_widening_leaves_the_wide_head_as_it_was(kind: str) -> None:
    world = build("er-c", kind, momentum=0.9)
    for batch in stream(3):
        world.observe(*batch)
    replace_layer(world.model, world.optimizer)
    optimizer_step = world.optimizer.step

    def fails(*_: object) -> None:
        optimizer_step()
        raise RuntimeError("the optimizer is broken")

    before = fingerprint(world)
    world.optimizer.step = fails  # type: ignore[method-assign, assignment]
    with pytest.raises(RuntimeError, match="the optimizer is broken"):
        world.observe(*of_more_classes(stream(1, seed=1))[0])
    assert differences(before, fingerprint(world)) == []


def test_a_layer_that_draws_put_in_on_the_way_draws_from_the_learners_generator() -> None:
    (inputs, labels), second = stream(2)
    losses = []
    for seed in range(2):
        world = build("er", "mlp")
        world.observe(inputs, labels)
        world.model[2] = nn.Dropout(0.5)  # type: ignore[operator]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            undisturbed = F.cross_entropy(world.predict(second[0]), second[1])
            losses.append(world.observe(*second).loss)
    assert losses[0] == losses[1] != pytest.approx(float(undisturbed), rel=0.01)


def test_parameters_given_to_the_optimizer_later_are_trained_from_then_on() -> None:
    net = model()
    head = head_of(net)
    optimizer = torch.optim.SGD(net[1].parameters(), lr=0.1)  # type: ignore[index]
    world = Learner(net, optimizer)
    first, second = stream(2)
    before = head.weight.detach().clone()
    world.observe(*first)
    assert torch.equal(head.weight, before)
    optimizer.add_param_group({"params": list(head.parameters())})
    world.observe(*second)
    assert not torch.equal(head.weight, before)


class Scaled(nn.Module):
    """A model with a parameter of a single number, which may be empty of layers at first."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.more = model(), nn.Sequential()
        self.scale = nn.Parameter(torch.ones(1))

    @override
    def forward(self, inputs: Tensor) -> Tensor:
        return self.more(self.scale * self.body(inputs))


@pytest.mark.parametrize("held", [True, False])
def test_a_single_number_replaced_by_an_equal_one_is_trained(held: bool) -> None:
    net = Scaled()
    optimizer = sgd(net)
    world = Learner(net, optimizer)
    first, second = stream(2)
    world.observe(*first)
    with torch.no_grad():
        net.scale = nn.Parameter(net.scale.clone())
    if held:
        optimizer.add_param_group({"params": [net.scale]})
        before = net.scale.detach().clone()
        world.observe(*second)
        assert not torch.equal(net.scale, before)
    else:
        with pytest.raises(ValueError, match="`scale` was replaced by a parameter that"):
            world.observe(*second)


def test_a_layer_put_where_there_was_none_is_trained() -> None:
    net = Scaled()
    optimizer = sgd(net)
    world = Learner(net, optimizer)
    first, second = stream(2)
    world.observe(*first)
    net.more.append(nn.Linear(CLASSES, CLASSES))
    optimizer.add_param_group({"params": list(net.more.parameters())})
    before = head_of(net.more).weight.detach().clone()
    world.observe(*second)
    assert not torch.equal(head_of(net.more).weight, before)


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_that_the_optimizer_does_not_hold_is_refused_with_what_to_do(kind: str) -> None:
    world = build("er", kind)
    first, second = stream(2)
    world.observe(*first)
    owner, name = (world.model, "head")
    if isinstance(owner, nn.Sequential):
        name = str(len(owner) - 1)
    setattr(owner, name, wider(head_of(world.model)))
    before = fingerprint(world)
    assert world.predict(first[0]).shape[1] == WIDER
    with pytest.raises(ValueError, match=rf"`{name}.weight`.*`optimizer.add_param_group"):
        world.observe(*second)
    assert differences(before, fingerprint(world)) == []
    head_of(world.model).requires_grad_(False)
    assert world.observe(*second).step == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["van", "er", "er-p"])
def test_a_model_frozen_as_a_whole_is_refused_and_learns_again_when_freed(
    name: str, kind: str
) -> None:
    world, twin = build(name, kind), build(name, kind)
    first, second = stream(2)
    world.observe(*first)
    twin.observe(*first)
    world.model.requires_grad_(False)
    before = fingerprint(world)
    for _ in range(2):
        with pytest.raises(ValueError, match="holds none of the model's trainable parameters"):
            world.observe(*second)
        assert torch.equal(world.predict(first[0]), twin.predict(first[0]))
    assert differences(before, fingerprint(world)) == []
    world.model.requires_grad_(True)
    world.observe(*second)
    twin.observe(*second)
    assert differences(fingerprint(world), fingerprint(twin)) == []
