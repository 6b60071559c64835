import pytest
import torch
from tests.unit.rules.vectors import random_gradients, target_of

from recollect.rules import GradientSum, WeightedSum


def test_the_target_is_the_incoming_gradient_plus_the_weighted_mean_replayed_one() -> None:
    gradients = random_gradients(0)
    expected = gradients[0] + 2.5 * gradients[1:].sum(0) / 5
    torch.testing.assert_close(target_of(WeightedSum(2.5), gradients), expected)


def test_the_target_minimises_the_proximal_problem_with_its_weight() -> None:
    # Eq. 3 with f = -<g_ref, w>: |w - g|^2 / (2 lambda) - <g_ref, w>, strictly convex.
    gradients = random_gradients(1)
    target = target_of(WeightedSum(4.0), gradients).requires_grad_()
    problem = (target - gradients[0]).square().sum() / 8 - target @ gradients[1:].mean(0)
    (slope,) = torch.autograd.grad(problem, target)
    torch.testing.assert_close(slope, torch.zeros_like(slope))


def test_a_weight_of_one_is_experience_replay() -> None:
    assert torch.equal(WeightedSum(1.0)(torch.eye(6)), GradientSum()(torch.eye(6)))


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan"), float("inf")])
def test_a_weight_that_is_none_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match=r"`replay_weight` is .*; pass a finite number above 0"):
        WeightedSum(weight)
