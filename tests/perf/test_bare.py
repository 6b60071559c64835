"""The bare loops do the work of our learners: from the same slots they take the same step."""

from typing import Any

import pytest
import torch
from perf.contestants.bare import BareER, BareJointER, BareMIR, BarePGD
from torch import Tensor, nn
from torch.testing import assert_close

import recollect
from recollect.learner import Learner
from recollect.models import mlp, seeded
from recollect.rules import PrincipalDirection

RATE = 0.05


def build() -> nn.Module:
    return mlp(6, 3, hidden=(5,)).double()


def learner_of(method: str, capacity: int, **options: Any) -> Learner:
    model = seeded(build, 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    return recollect.method(method, model, optimizer, capacity=capacity, replay=4, **options)


def batch(rng: torch.Generator) -> tuple[Tensor, Tensor]:
    inputs = torch.randn(5, 6, generator=rng, dtype=torch.float64)
    return inputs, torch.randint(3, (5,), generator=rng)


def give_memory(bare: BareER, learner: Learner) -> None:
    assert learner.memory is not None
    bare.filled = len(learner.memory)
    if bare.filled:
        inputs, labels = learner.memory.read(torch.arange(bare.filled))
        assert isinstance(inputs, Tensor)
        bare.inputs, bare.labels = inputs, labels


def weights(model: nn.Module) -> list[Tensor]:
    return [parameter.detach() for parameter in model.parameters()]


@pytest.mark.parametrize(
    ("kind", "method", "passes"),
    [
        (BareJointER, "er", "joint"),
        (BareER, "er", "separate"),
        (BarePGD, "er-p", "joint"),
    ],
)
def test_a_bare_loop_takes_the_step_of_our_learner(
    kind: type[BareER], method: str, passes: str, rng: torch.Generator
) -> None:
    learner = learner_of(method, 8, passes=passes)
    bare = kind(build, capacity=8, replay=4, learning_rate=RATE)
    for _ in range(6):
        incoming = batch(rng)
        give_memory(bare, learner)
        slots = learner.observe(*incoming).replayed_slots
        bare.draw = {4: slots, 8: slots}.__getitem__  # type: ignore[method-assign, assignment]
        bare.update(*incoming)
        assert_close(weights(bare.model), weights(learner.model))


@pytest.mark.parametrize("length", [0.5, 30.0])  # below and above the floor of |w|
def test_bare_pgd_turns_as_our_rule_does(length: float, rng: torch.Generator) -> None:
    rows = torch.randn(5, 9, generator=rng, dtype=torch.float64)
    rows[0] *= length / rows[0].norm()
    weights = PrincipalDirection()(rows @ rows.T)
    assert_close(BarePGD(build).direction(rows[0], rows[1:]), weights @ rows)


def test_bare_mir_replays_what_ours_replays(rng: torch.Generator) -> None:
    learner = learner_of("er-mir", 50)
    bare = BareMIR(build, capacity=50, replay=4, learning_rate=RATE)
    bare.draw = torch.arange  # type: ignore[method-assign, assignment]
    bare.candidates = 50
    for _ in range(10):  # then all 50 slots are candidates on both sides
        learner.observe(*batch(rng))
    bare.model.load_state_dict(learner.model.state_dict())
    for _ in range(3):
        incoming = batch(rng)
        give_memory(bare, learner)
        learner.observe(*incoming)
        bare.update(*incoming)
        assert_close(weights(bare.model), weights(learner.model))


def test_a_bare_reservoir_keeps_what_came_and_no_more(rng: torch.Generator) -> None:
    bare = BareER(build, capacity=7, replay=4)
    came = []
    for _ in range(8):
        inputs, labels = batch(rng)
        came.append(inputs)
        bare.observe(inputs, labels)
    assert (bare.filled, bare.seen) == (7, 40)
    kept = (bare.inputs.unsqueeze(1) == torch.cat(came)).all(2)
    assert kept.any(1).all()
