"""A step that nothing could be learnt after is refused, and leaves everything as it was."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.unit.learner.support import differences, fingerprint, learner, run, sgd, stream
from torch import Tensor, nn

from recollect import Learner
from recollect.errors import CheckpointError, NonFiniteError


def momentum(net: nn.Module) -> torch.optim.Optimizer:
    return sgd(net, momentum=0.9)


def adam(net: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(net.parameters(), lr=0.01)


def scheduled(net: nn.Module) -> torch.optim.Optimizer:
    optimizer = sgd(net)
    torch.optim.lr_scheduler.StepLR(optimizer, 10)
    return optimizer


OPTIMIZERS: dict[str, Callable[[nn.Module], torch.optim.Optimizer]] = {
    "sgd": sgd,
    "momentum": momentum,
    "adam": adam,
    "scheduled": scheduled,
}
NAMES = ["van", "er", "er-p", "er-c", "er-mir", "gss"]


def in_mid_stream(name: str, kind: str, optimizer: str) -> Learner:
    return run(learner(name, kind, optimizer=OPTIMIZERS[optimizer]), stream(4))


def huge(value: float) -> tuple[Tensor, Tensor]:
    inputs, labels = stream(1, seed=9)[0]
    inputs[0, 0, 0, 0] = value
    return inputs, labels


@pytest.mark.parametrize("rate", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", NAMES)
def test_a_learning_rate_that_is_no_number_is_refused_by_name(
    name: str, optimizer: str, rate: float, tmp_path: Path
) -> None:
    world = in_mid_stream(name, "mlp", optimizer)
    good = world.optimizer.param_groups[0]["lr"]
    world.optimizer.param_groups[0]["lr"] = rate
    before = fingerprint(world)
    with pytest.raises(NonFiniteError, match=rf"`lr` of group 0 of the optimizer is {rate}; "):
        world.observe(*stream(1, seed=9)[0])
    assert differences(before, fingerprint(world)) == []
    world.optimizer.param_groups[0]["lr"] = good
    world.observe(*stream(1, seed=9)[0])
    world.save(tmp_path / "it")


@pytest.mark.parametrize("rate", [math.nan, math.inf, -math.inf])
def test_a_learner_with_such_a_rate_does_not_take_the_place_of_one_that_can_go_on(
    rate: float, tmp_path: Path
) -> None:
    world = in_mid_stream("er", "mlp", "sgd")
    world.save(tmp_path / "it")
    whole = (tmp_path / "it").read_bytes()
    world.optimizer.param_groups[0]["lr"] = rate
    with pytest.raises(CheckpointError, match=r"cannot be saved, .*`lr` of group 0"):
        world.save(tmp_path / "it")
    assert (tmp_path / "it").read_bytes() == whole


@pytest.mark.parametrize("kind", ["mlp", "dropout", "batch norm"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", NAMES)
def test_an_input_beyond_all_others_is_refused_and_the_next_batch_is_learnt(
    name: str, optimizer: str, kind: str, tmp_path: Path
) -> None:
    world = in_mid_stream(name, kind, optimizer)
    before = fingerprint(world)
    with pytest.raises(NonFiniteError):
        world.observe(*huge(1e30))
    assert differences(before, fingerprint(world)) == []
    for batch in stream(5, seed=9):
        weights = [parameter.detach().clone() for parameter in world.model.parameters()]
        world.observe(*batch)
        assert not all(map(torch.equal, weights, world.model.parameters()))
    world.save(tmp_path / "it")


def test_a_transform_may_make_sense_of_numbers_that_stand_for_nothing() -> None:
    world = learner("er", transform=lambda inputs: inputs.where(inputs < 1e20, 0.0))
    for _ in range(3):
        world.observe(*huge(1e30))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", NAMES)
def test_a_gradient_beyond_all_others_is_refused_and_the_next_batch_is_learnt(
    name: str, optimizer: str
) -> None:
    """By way of a transform, whose inputs are its own business."""
    scale = [1.0]
    world = learner(
        *(name, "batch norm"), optimizer=OPTIMIZERS[optimizer], transform=lambda x: scale[0] * x
    )
    run(world, stream(4))
    before = fingerprint(world)
    scale[0] = 1e30
    with pytest.raises(NonFiniteError):
        world.observe(*stream(1, seed=9)[0])
    assert differences(before, fingerprint(world)) == []
    scale[0] = 1.0
    run(world, stream(3, seed=9))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_rate_that_throws_the_weights_out_of_reach_is_refused(optimizer: str) -> None:
    world = in_mid_stream("er", "mlp", optimizer)
    world.optimizer.param_groups[0]["lr"] = 1e30
    before = fingerprint(world)
    with pytest.raises(NonFiniteError, match="lower the learning rate"):
        world.observe(*stream(1, seed=9)[0])
    assert differences(before, fingerprint(world)) == []


def test_a_second_group_with_a_wrong_rate_is_named() -> None:
    def two_groups(net: nn.Module) -> torch.optim.Optimizer:
        first, *rest = net.parameters()
        return torch.optim.SGD([{"params": [first]}, {"params": rest}], lr=0.1)

    world = learner("er", optimizer=two_groups)
    world.optimizer.param_groups[1]["lr"] = math.nan
    with pytest.raises(NonFiniteError, match="`lr` of group 1 of the optimizer is nan"):
        world.observe(*stream(1)[0])


def test_large_steps_that_can_be_learnt_after_are_taken() -> None:
    world = in_mid_stream("er", "mlp", "sgd")
    world.optimizer.param_groups[0]["lr"] = 1e6
    world.observe(*stream(1, seed=9)[0])
    assert world.step == 5
