import math

import pytest
import torch
from tests.unit.rules.vectors import random_gradients, target_of
from torch import Tensor

from recollect.rules import GradientSum, PrincipalDirection, ProximalRule


def experience_replay(products: Tensor, squared_length: Tensor, lengths: Tensor) -> Tensor:
    return -products.mean()


def principal(products: Tensor, squared_length: Tensor, lengths: Tensor) -> Tensor:
    """PGD's f with eps = 1 and |w| floored at 2."""
    target_length = squared_length.clamp_min(4.0).sqrt()
    return -(lengths.sigmoid() * products / (target_length * lengths.clamp_min(1.0))).sum()


def test_experience_replay_written_as_an_objective_is_the_gradient_sum() -> None:
    gram = random_gradients(0) @ random_gradients(0).T
    torch.testing.assert_close(ProximalRule(experience_replay)(gram), GradientSum()(gram))


@pytest.mark.parametrize("steps", [2, 5, 50])
def test_experience_replay_stays_the_gradient_sum_when_the_pull_matches_the_step(
    steps: int,
) -> None:
    # With a linear f the proximal problem is solved by one full step: pull = step_size = 1.
    gram = random_gradients(1) @ random_gradients(1).T
    rule = ProximalRule(experience_replay, step_size=1.0, pull=1.0, steps=steps)
    torch.testing.assert_close(rule(gram), GradientSum()(gram))


@pytest.mark.parametrize("steps", [1, 2, 5, 50])
@pytest.mark.parametrize("scale", [0.05, 1.0, 10.0])
def test_pgd_written_as_an_objective_is_the_principal_direction(steps: int, scale: float) -> None:
    gradients = scale * random_gradients(steps)
    by_objective = ProximalRule(principal, step_size=0.7, steps=steps, pull=0.3)
    by_hand = PrincipalDirection(
        step_size=0.7, norm_floor=1.0, target_floor=2.0, steps=steps, pull=0.3
    )
    torch.testing.assert_close(
        target_of(by_objective, gradients), target_of(by_hand, gradients), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("steps", [1, 2, 5, 50])
def test_an_objective_of_ones_own_equals_autograd_on_the_vectors(steps: int) -> None:
    # f(w) = sum_i softplus(-<w, g_i>) + |w|^2 / 10, as a user might write it.
    gradients = random_gradients(steps)
    incoming, replayed = gradients[0], gradients[1:]
    target = incoming
    for _ in range(steps):
        at = target.detach().requires_grad_()
        value = torch.nn.functional.softplus(-(replayed @ at)).sum() + at.square().sum() / 10
        (slope,) = torch.autograd.grad(value, at)
        target = target - 0.2 * slope + 0.4 * (incoming - target)

    def objective(products: Tensor, squared_length: Tensor, lengths: Tensor) -> Tensor:
        return torch.nn.functional.softplus(-products).sum() + squared_length / 10

    rule = ProximalRule(objective, step_size=0.2, steps=steps, pull=0.4)
    torch.testing.assert_close(target_of(rule, gradients), target, rtol=1e-9, atol=1e-9)


def test_lengths_are_those_of_the_replayed_gradients() -> None:
    seen: list[Tensor] = []

    def objective(products: Tensor, squared_length: Tensor, lengths: Tensor) -> Tensor:
        seen.append(lengths)
        return products.sum()

    gradients = random_gradients(2)
    ProximalRule(objective)(gradients @ gradients.T)
    torch.testing.assert_close(seen[0], gradients[1:].norm(dim=1))


def test_it_works_where_gradients_are_switched_off() -> None:
    gram = random_gradients(3) @ random_gradients(3).T
    with torch.no_grad():
        weights = ProximalRule(principal)(gram)
    assert torch.equal(weights, ProximalRule(principal)(gram))
    assert not weights.requires_grad


def test_rounding_below_zero_does_not_reach_the_objective() -> None:
    # The length of a vanishing w can come out of float32 as a small negative number.
    gram = torch.tensor([[-1e-12, 0.0], [0.0, -1e-12]])

    def objective(products: Tensor, squared_length: Tensor, lengths: Tensor) -> Tensor:
        return products.sum() / (1 + squared_length.sqrt().detach() + lengths.sum())

    assert ProximalRule(objective)(gram).isfinite().all()


def test_an_objective_with_several_values_is_refused() -> None:
    def objective(products: Tensor, squared_length: Tensor, lengths: Tensor) -> Tensor:
        return products

    with pytest.raises(ValueError, match=r"`objective` returned shape \(5,\); return a single"):
        ProximalRule(objective)(torch.eye(6))


@pytest.mark.parametrize("value", [1.0, torch.tensor(1.0)])
def test_an_objective_that_does_not_depend_on_the_target_is_refused(value: object) -> None:
    def objective(products: Tensor, squared_length: Tensor, lengths: Tensor) -> Tensor:
        return value  # type: ignore[return-value]

    with pytest.raises(TypeError, match=r"`objective` returned .*1\..*; return a tensor computed"):
        ProximalRule(objective)(torch.eye(3))


@pytest.mark.parametrize(
    ("setting", "value"),
    [("step_size", -1.0), ("step_size", math.nan), ("steps", 0), ("steps", 2.0), ("pull", 2.0)],
)
def test_a_setting_that_makes_no_sense_is_refused_by_name_and_value(
    setting: str, value: float
) -> None:
    with pytest.raises(ValueError, match=rf"`{setting}` is {value!r}; pass"):
        ProximalRule(experience_replay, **{setting: value})  # type: ignore[arg-type]
