import math

import pytest
import torch
from tests.unit.rules.vectors import principal_slope, random_gradients, target_of

from recollect.rules import PrincipalDirection

STEPS = [1, 2, 5, 50]
# |g_i| runs from about 0.2 to 8: floors below all, among them and above all.
NORM_FLOORS = [1e-3, 2.0, 100.0]
# |w| stays above, crosses, stays below.
TARGET_FLOORS = [1e-3, 1.2, 100.0]


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("norm_floor", NORM_FLOORS)
@pytest.mark.parametrize("target_floor", TARGET_FLOORS)
def test_any_number_of_steps_equals_autograd_descent_on_the_written_objective(
    steps: int, norm_floor: float, target_floor: float
) -> None:
    gradients = random_gradients(steps)
    incoming, replayed = gradients[0], gradients[1:]
    target = incoming
    for _ in range(steps):
        slope = principal_slope(target, replayed, norm_floor=norm_floor, target_floor=target_floor)
        target = target - 0.7 * slope + 0.3 * (incoming - target)
    rule = PrincipalDirection(
        step_size=0.7, norm_floor=norm_floor, target_floor=target_floor, steps=steps, pull=0.3
    )
    torch.testing.assert_close(target_of(rule, gradients), target, rtol=1e-9, atol=1e-9)


def test_a_run_above_starts_below_the_floor_of_the_target_and_ends_above_it() -> None:
    gradients = random_gradients(50)
    rule = PrincipalDirection(step_size=0.7, norm_floor=2.0, target_floor=1.2, steps=50, pull=0.3)
    assert gradients[0].norm() < 1.2 < target_of(rule, gradients).norm()


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize(("alpha", "beta"), [(2.0, 0.5), (0.4, 1.2)])
def test_any_number_of_steps_equals_the_proximal_gradient_method(
    steps: int, alpha: float, beta: float
) -> None:
    # Eq. 10: w <- (alpha (w - beta grad f(w)) + beta g) / (alpha + beta), from w = g.
    gradients = random_gradients(100 + steps)
    incoming, replayed = gradients[0], gradients[1:]
    target = incoming
    for _ in range(steps):
        slope = principal_slope(target, replayed, norm_floor=1.0, target_floor=0.5)
        target = (alpha * (target - beta * slope) + beta * incoming) / (alpha + beta)
    rule = PrincipalDirection(
        step_size=alpha * beta / (alpha + beta),
        pull=beta / (alpha + beta),
        norm_floor=1.0,
        target_floor=0.5,
        steps=steps,
    )
    torch.testing.assert_close(target_of(rule, gradients), target, rtol=1e-9, atol=1e-9)


def test_a_proximal_step_solves_the_proximal_problem() -> None:
    # Eq. 9 behind Eq. 10: the second iterate has no slope on |w - v|^2 / (2 beta) +
    # |w - g|^2 / (2 alpha), where v is a gradient step from the first.
    alpha, beta = 2.0, 0.5
    gradients = random_gradients(7)
    incoming, replayed = gradients[0], gradients[1:]

    def after(steps: int) -> torch.Tensor:
        rule = PrincipalDirection(
            step_size=alpha * beta / (alpha + beta),
            pull=beta / (alpha + beta),
            norm_floor=1.0,
            target_floor=0.5,
            steps=steps,
        )
        return target_of(rule, gradients)

    first = after(1)
    slope = principal_slope(first, replayed, norm_floor=1.0, target_floor=0.5)
    descended = first - beta * slope
    target = after(2).requires_grad_()
    problem = (target - descended).square().sum() / (2 * beta)
    problem = problem + (target - incoming).square().sum() / (2 * alpha)
    (left,) = torch.autograd.grad(problem, target)
    torch.testing.assert_close(left, torch.zeros_like(left), rtol=0, atol=1e-12)


def test_one_step_worked_by_hand_above_the_floor_of_the_target() -> None:
    # g = (2, 0), g_1 = (3, 4): a_1 = sigmoid(5) / 5, <g, g_1> = 6, |g| = 2.
    # w = (1 - lambda a_1 6 / 2^3) g + (lambda a_1 / 2) g_1 with lambda = 1.
    pull = 1 / (1 + math.exp(-5)) / 5
    gram = torch.tensor([[4.0, 6.0], [6.0, 25.0]], dtype=torch.float64)
    weights = PrincipalDirection(step_size=1.0, norm_floor=1.0, target_floor=1.0)(gram)
    expected = torch.tensor([1 - pull * 6 / 8, pull / 2], dtype=torch.float64)
    torch.testing.assert_close(weights, expected)


def test_one_step_worked_by_hand_below_the_floor_of_the_target() -> None:
    # As above with |w| read as 3: f is linear there, so g keeps its weight.
    pull = 1 / (1 + math.exp(-5)) / 5
    gram = torch.tensor([[4.0, 6.0], [6.0, 25.0]], dtype=torch.float64)
    weights = PrincipalDirection(step_size=1.0, norm_floor=1.0, target_floor=3.0)(gram)
    torch.testing.assert_close(weights, torch.tensor([1.0, pull / 3], dtype=torch.float64))


def test_a_gradient_shorter_than_the_norm_floor_is_divided_by_the_floor() -> None:
    # |g_1| = 0.5 under a floor of 2: a_1 = sigmoid(0.5) / 2.
    gram = torch.tensor([[1.0, 0.0], [0.0, 0.25]], dtype=torch.float64)
    weights = PrincipalDirection(step_size=1.0, norm_floor=2.0, target_floor=1.0)(gram)
    assert float(weights[1]) == pytest.approx(1 / (1 + math.exp(-0.5)) / 2)


@pytest.mark.parametrize("steps", STEPS)
def test_a_step_size_of_zero_returns_the_incoming_gradient(steps: int) -> None:
    gradients = random_gradients(3)
    weights = PrincipalDirection(step_size=0.0, steps=steps)(gradients @ gradients.T)
    assert weights.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]


def test_replaying_the_incoming_gradient_itself_changes_nothing() -> None:
    # Note P1: grad f has no part along w, so the paper's term i = 0 is zero at w = g.
    gradients = random_gradients(4)
    gradients[1] = gradients[0]
    rule = PrincipalDirection(step_size=2.0, norm_floor=0.1, target_floor=0.1)
    without = target_of(rule, gradients[[0, 2, 3, 4, 5]])
    torch.testing.assert_close(target_of(rule, gradients), without)


@pytest.mark.parametrize("steps", [1, 5])
@pytest.mark.parametrize(("groups", "members"), [(1, [5]), (2, [3, 2]), (3, [2, 2, 1])])
def test_groups_equal_the_rule_on_the_means_of_consecutive_groups(
    groups: int, members: list[int], steps: int
) -> None:
    gradients = random_gradients(5)
    rows = iter(gradients[1:])
    means = [torch.stack([next(rows) for _ in range(size)]).mean(0) for size in members]
    grouped = PrincipalDirection(step_size=2.0, target_floor=1.0, steps=steps, groups=groups)
    alone = PrincipalDirection(step_size=2.0, target_floor=1.0, steps=steps)
    expected = target_of(alone, torch.stack((gradients[0], *means)))
    torch.testing.assert_close(target_of(grouped, gradients), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("groups", [5, 6, 100])
def test_as_many_groups_as_gradients_treat_every_one_alone(groups: int) -> None:
    gram = random_gradients(6) @ random_gradients(6).T
    assert torch.equal(PrincipalDirection(groups=groups)(gram), PrincipalDirection()(gram))


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("step_size", -1.0),
        ("step_size", math.inf),
        ("step_size", math.nan),
        ("norm_floor", 0.0),
        ("norm_floor", math.nan),
        ("target_floor", -3.0),
        ("target_floor", math.inf),
        ("steps", 0),
        ("steps", 1.0),
        ("steps", True),
        ("pull", -0.1),
        ("pull", 1.1),
        ("pull", math.nan),
        ("groups", 0),
        ("groups", 2.5),
        ("groups", True),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_by_name_and_value(
    setting: str, value: float
) -> None:
    with pytest.raises(ValueError, match=rf"`{setting}` is {value!r}; pass"):
        PrincipalDirection(**{setting: value})  # type: ignore[arg-type]
