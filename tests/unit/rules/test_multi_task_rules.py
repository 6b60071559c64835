"""PCGrad, MGDA, CAGrad and UPGrad: what each promises, and torchjd or scipy as an oracle."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.optimize import LinearConstraint, minimize
from tests.unit.rules.vectors import random_gradients, target_of
from torch import Tensor
from torchjd.aggregation import MGDAWeighting, PCGradWeighting, UPGradWeighting
from torchjd.linalg import QuadprogProjector

from recollect.rules import MGDA, CAGrad, GradientSum, PCGrad, Rule, UPGrad

RULES: list[Rule] = [PCGrad(), MGDA(), CAGrad(), UPGrad()]
each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
several = pytest.mark.parametrize(("seed", "replayed"), [(0, 1), (1, 2), (2, 5), (3, 10)])


def conflicting(seed: int, replayed: int) -> Tensor:
    """Gradients of which g points against most others, and some others against each other."""
    rows = random_gradients(seed, replayed=replayed, params=30)
    rows[0] -= 0.4 * rows[1:].sum(0)
    return rows


def preferences(rows: Tensor) -> Tensor:
    """ER's weights: 1 for g, 1 / K for each g_i."""
    return GradientSum()(rows @ rows.T)


# --- torchjd --------------------------------------------------------------------------------------


@several
def test_pcgrad_is_torchjds_in_the_order_it_states(
    seed: int, replayed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = conflicting(seed, replayed)
    parts = rows * preferences(rows).unsqueeze(1)  # of ER's step; torchjd adds them up
    unit = rows / rows.norm(dim=1, keepdim=True)
    orders = iter((unit @ unit.T).argsort(dim=1))
    monkeypatch.setattr(torch, "randperm", lambda _: next(orders))
    theirs = PCGradWeighting()(parts @ parts.T) @ parts
    torch.testing.assert_close(target_of(PCGrad(), rows), theirs)
    assert not torch.allclose(theirs, target_of(GradientSum(), rows))


@several
def test_mgda_is_what_torchjds_converges_to(seed: int, replayed: int) -> None:
    rows = conflicting(seed, replayed)
    theirs = MGDAWeighting(epsilon=1e-6, max_iters=3000)(rows @ rows.T) @ rows
    assert (target_of(MGDA(), rows) - 2 * theirs).norm() < 0.01 * rows.norm()
    assert target_of(MGDA(), rows).norm() <= 2 * theirs.norm() + 1e-9  # and is never longer


@several
def test_upgrad_is_torchjds_with_the_preferences_of_er(seed: int, replayed: int) -> None:
    rows = conflicting(seed, replayed)
    projector = QuadprogProjector(norm_eps=1e-12, reg_eps=1e-12)
    weigh = UPGradWeighting(pref_vector=preferences(rows), projector=projector)
    theirs = weigh(rows @ rows.T) @ rows
    torch.testing.assert_close(target_of(UPGrad(), rows), theirs)


@several
@pytest.mark.parametrize("radius", [0.1, 0.5])
def test_cagrad_helps_the_worst_gradient_as_much_as_its_dual_allows(
    seed: int, replayed: int, radius: float
) -> None:
    """Whatever the shares, the dual bounds what a step can do; scipy looks for the least bound.

    torchjd's own asks for cvxpy, 230 MB of solvers, and comes to within 1e-3 only.
    """
    rows = conflicting(seed, replayed)
    middle = target_of(GradientSum(), rows) / 2
    found = target_of(CAGrad(radius=radius), rows) / 2
    size = rows.norm()  # the solver's tolerances are for numbers around one
    gradients, mean = (rows / size).numpy(), (middle / size).numpy()

    def bound(shares: np.ndarray) -> float:
        mixed = shares @ gradients
        return float(mixed @ mean + radius * np.linalg.norm(mean) * np.linalg.norm(mixed))

    least = minimize(
        bound,
        np.full(len(rows), 1 / len(rows)),
        method="SLSQP",
        bounds=[(0, 1)] * len(rows),
        constraints=LinearConstraint(np.ones(len(rows)), 1, 1),
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    torch.testing.assert_close((found - middle).norm(), radius * middle.norm())
    reached = float((rows @ found).amin() / size**2)
    assert reached == pytest.approx(least.fun, abs=1e-8)


@several
@pytest.mark.parametrize("radius", [0.3, 0.9, 1.5])
def test_no_step_in_reach_helps_the_worst_gradient_more_than_cagrads(
    seed: int, replayed: int, radius: float
) -> None:
    rows = conflicting(seed, replayed)
    middle = target_of(GradientSum(), rows) / 2
    found = target_of(CAGrad(radius=radius), rows) / 2
    reach = radius * middle.norm()
    torch.testing.assert_close((found - middle).norm(), reach)
    rng = torch.Generator().manual_seed(seed)
    for scale in (1.0, 0.1, 0.01, 1e-3):  # near what was found, and far from it
        noise = torch.randn(400, rows.shape[1], generator=rng, dtype=torch.float64)
        others = found - middle + scale * reach * noise / noise.norm(dim=1, keepdim=True)
        others = middle + others * (reach / others.norm(dim=1, keepdim=True))
        best = (others @ rows.T).amin(1).amax()
        assert best <= (rows @ found).amin() + 1e-7 * rows.norm()


# --- what each promises ---------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [PCGrad(), UPGrad()], ids=lambda rule: type(rule).__name__)
def test_without_conflict_the_step_is_that_of_er(rule: Rule) -> None:
    rows = random_gradients(0).abs()
    torch.testing.assert_close(target_of(rule, rows), target_of(GradientSum(), rows))


@each_rule
def test_equal_gradients_give_the_step_of_er(rule: Rule) -> None:
    rows = random_gradients(0)[[1] * 6]
    expected = 2 * rows[0] if rule != CAGrad() else 3 * rows[0]  # as far along it as it may
    torch.testing.assert_close(target_of(rule, rows), expected)


def test_a_radius_of_zero_is_experience_replay() -> None:
    gram = random_gradients(1) @ random_gradients(1).T
    torch.testing.assert_close(CAGrad(radius=0.0)(gram), GradientSum()(gram))


@several
@pytest.mark.parametrize("rule", [MGDA(), UPGrad()], ids=lambda rule: type(rule).__name__)
def test_no_gradient_points_against_the_step(rule: Rule, seed: int, replayed: int) -> None:
    rows = conflicting(seed, replayed)
    assert (rows @ target_of(rule, rows)).amin() >= -1e-9 * rows.norm() ** 2


def test_mgda_stands_still_where_no_step_helps_everybody() -> None:
    rows = random_gradients(0, replayed=1)
    rows[1] = -3 * rows[0]
    torch.testing.assert_close(target_of(MGDA(), rows), torch.zeros_like(rows[0]))


@several
@pytest.mark.parametrize("power", [-6, 6])
@each_rule
def test_the_step_scales_with_the_gradients(
    rule: Rule, seed: int, replayed: int, power: int
) -> None:
    rows = conflicting(seed, replayed)
    scaled = target_of(rule, 10.0**power * rows)
    expected = 10.0**power * target_of(rule, rows)
    torch.testing.assert_close(scaled, expected, rtol=1e-5, atol=1e-5 * float(expected.norm()))


@each_rule
@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_dependent_gradients_does_not_matter(rule: Rule, seed: int) -> None:
    rows = random_gradients(seed, replayed=8, params=4)  # more gradients than dimensions
    order = torch.tensor([0, 8, 3, 1, 7, 2, 6, 4, 5])
    torch.testing.assert_close(
        target_of(rule, rows[order]), target_of(rule, rows), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("kind", [PCGrad, MGDA, CAGrad, UPGrad])
def test_groups_are_averaged_first(kind: Callable[..., Rule]) -> None:
    rows = conflicting(2, 6)
    means = torch.stack((rows[0], rows[1:4].mean(0), rows[4:].mean(0)))
    torch.testing.assert_close(target_of(kind(groups=2), rows), target_of(kind(), means))


@pytest.mark.parametrize("kind", [PCGrad, MGDA, CAGrad, UPGrad])
@pytest.mark.parametrize("groups", [0, -1, 1.5, True])
def test_groups_that_are_no_number_from_1_are_refused(
    kind: Callable[..., Rule], groups: object
) -> None:
    with pytest.raises(ValueError, match=r"`groups` is .*; pass a whole number from 1, or None"):
        kind(groups=groups)


@pytest.mark.parametrize("radius", [-0.1, float("nan"), float("inf")])
def test_a_radius_below_zero_is_refused(radius: float) -> None:
    with pytest.raises(ValueError, match=r"`radius` is .*; pass a finite number, 0 or above"):
        CAGrad(radius=radius)
