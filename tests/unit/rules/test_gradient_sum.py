import torch
from tests.unit.rules.vectors import random_gradients, target_of

from recollect.rules import GradientSum


def test_the_target_is_the_incoming_gradient_plus_the_mean_replayed_one() -> None:
    gradients = random_gradients(0)
    expected = gradients[0] + gradients[1:].sum(0) / 5
    torch.testing.assert_close(target_of(GradientSum(), gradients), expected)


def test_the_target_minimises_the_proximal_problem_of_experience_replay() -> None:
    # Eq. 4: |w - g|^2 / 2 - <g_ref, w>, strictly convex, so a zero slope is the minimum.
    gradients = random_gradients(1)
    target = target_of(GradientSum(), gradients).requires_grad_()
    problem = (target - gradients[0]).square().sum() / 2 - target @ gradients[1:].mean(0)
    (slope,) = torch.autograd.grad(problem, target)
    torch.testing.assert_close(slope, torch.zeros_like(slope))


def test_the_weights_do_not_depend_on_the_gradients_as_it_claims() -> None:
    assert GradientSum.needs == "nothing"
    assert torch.equal(GradientSum()(torch.zeros(4, 4)), GradientSum()(torch.eye(4)))


def test_one_replayed_gradient_counts_as_much_as_the_incoming_one() -> None:
    assert GradientSum()(torch.eye(2)).tolist() == [1.0, 1.0]
