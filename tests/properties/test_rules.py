"""What holds for rules whatever the gradients: gradients are drawn, Gram matrices made of them."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from recollect.rules import (
    MGDA,
    AveragedProjection,
    CAGrad,
    ClippedSum,
    GradientSum,
    PCGrad,
    PrincipalDirection,
    ProximalRule,
    Rule,
    UPGrad,
    WeightedSum,
)


def named(rule: Rule) -> str:
    """A function's repr has an address in it, which differs between test processes."""
    return str(rule).split("<function")[0]


def _softened_products(products: Tensor, squared_length: Tensor, lengths: Tensor) -> Tensor:
    return -products.mean() + (1 + squared_length).sqrt() - lengths.sum()


RULES: list[Rule] = [
    GradientSum(),
    WeightedSum(),
    ClippedSum(),
    AveragedProjection(),
    PrincipalDirection(),
    PrincipalDirection(step_size=0.5, norm_floor=0.1, target_floor=0.1, steps=5),
    ProximalRule(_softened_products, steps=3),
]
GROUPING = PrincipalDirection(step_size=1.0, groups=2)
# Dependent gradients leave their weights open, though not their targets.
MULTI_TASK: list[Rule] = [PCGrad(), MGDA(), CAGrad(), UPGrad()]
each_rule = pytest.mark.parametrize("rule", RULES, ids=named)
each_rule_there_is = pytest.mark.parametrize("rule", RULES + MULTI_TASK, ids=named)


@st.composite
def gradients(draw: st.DrawFn, *, zeros: bool = False) -> Tensor:
    """Rows g, g_1 .. g_K in float64: K from 1, lengths over four orders, some zero if allowed."""
    replayed = draw(st.integers(1, 8))
    params = draw(st.integers(2, 10))
    rng = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    rows = torch.randn(1 + replayed, params, generator=rng, dtype=torch.float64)
    scales = [draw(st.floats(-2, 2).map(lambda power: 10.0**power)) for _ in range(1 + replayed)]
    if zeros:
        scales = [scale * draw(st.sampled_from([0.0, 1.0])) for scale in scales]
    return rows * torch.tensor(scales, dtype=torch.float64).unsqueeze(1)


def target_of(rule: Rule, rows: Tensor) -> Tensor:
    return rule(rows @ rows.T) @ rows


@each_rule
@settings(max_examples=25)
@given(rows=gradients(), seed=st.integers(0, 1000))
def test_the_order_of_replayed_gradients_does_not_matter(
    rule: Rule, rows: Tensor, seed: int
) -> None:
    rng = torch.Generator().manual_seed(seed)
    order = torch.cat((torch.tensor([0]), 1 + torch.randperm(len(rows) - 1, generator=rng)))
    shuffled = rows[order]
    weights = rule(rows @ rows.T)
    torch.testing.assert_close(rule(shuffled @ shuffled.T), weights[order], rtol=1e-7, atol=1e-7)


@settings(max_examples=25)
@given(rows=gradients(), seed=st.integers(0, 1000))
def test_with_groups_only_the_order_within_a_group_does_not_matter(rows: Tensor, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    members = torch.arange(1, len(rows)).tensor_split(min(2, len(rows) - 1))
    mixed = [group[torch.randperm(len(group), generator=rng)] for group in members]
    shuffled = rows[torch.cat((torch.tensor([0]), *mixed))]
    expected = target_of(GROUPING, rows)
    torch.testing.assert_close(target_of(GROUPING, shuffled), expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("rule", [GradientSum(), WeightedSum(), AveragedProjection()], ids=named)
@settings(max_examples=25)
@given(rows=gradients(), power=st.floats(-3, 3))
def test_scaling_all_gradients_scales_the_target_of_sum_and_projection(
    rule: Rule, rows: Tensor, power: float
) -> None:
    scale = 10.0**power
    torch.testing.assert_close(target_of(rule, scale * rows), scale * target_of(rule, rows))


@settings(max_examples=25)
@given(rows=gradients(), power=st.floats(-1, 1), steps=st.integers(1, 5))
def test_scaling_the_incoming_gradient_scales_the_target_of_pgd_with_its_settings(
    rows: Tensor, power: float, steps: int
) -> None:
    # Lengths of the g_i enter through a sigmoid, so scaling them changes PGD's weights. What does
    # hold: f is blind to the length of w above the floor, so with g scaled by c, the floor of |w|
    # by c and lambda by c^2, w scales by c, at every number of steps.
    scale = 10.0**power
    scaled = rows.clone()
    scaled[0] *= scale
    rule = PrincipalDirection(step_size=0.5, target_floor=1.0, steps=steps)
    stretched = PrincipalDirection(step_size=0.5 * scale**2, target_floor=scale, steps=steps)
    torch.testing.assert_close(
        target_of(stretched, scaled), scale * target_of(rule, rows), rtol=1e-6, atol=1e-6
    )


@settings(max_examples=25)
@given(rows=gradients())
def test_one_step_of_pgd_never_lowers_the_weighted_agreement_with_the_replayed(
    rows: Tensor,
) -> None:
    # A step along -grad f is an ascent direction of sum_i a_i <w, g_i> below the floor of |w|,
    # where f is linear.
    rule = PrincipalDirection(step_size=1.0, target_floor=1e6)
    lengths = rows[1:].norm(dim=1)
    pulls = lengths.sigmoid() / lengths.clamp_min(rule.norm_floor)
    agreement = pulls @ rows[1:]
    assert (target_of(rule, rows) - rows[0]) @ agreement >= 0


@each_rule_there_is
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@settings(max_examples=25)
@given(rows=gradients(zeros=True))
def test_dtype_device_and_length_are_those_of_the_gram_matrix(
    dtype: torch.dtype, rule: Rule, rows: Tensor
) -> None:
    gram = (rows @ rows.T).to(dtype)
    weights = rule(gram)
    assert weights.dtype == dtype
    assert weights.device == gram.device
    assert weights.shape == (len(rows),)


@each_rule_there_is
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@settings(max_examples=25)
@given(rows=gradients(zeros=True))
def test_weights_are_finite_also_where_gradients_vanish(
    dtype: torch.dtype, rule: Rule, rows: Tensor
) -> None:
    assert rule((rows @ rows.T).to(dtype)).isfinite().all()


@each_rule_there_is
@pytest.mark.parametrize("replayed", [1, 2, 10])
def test_no_gradient_at_all_gives_no_update_and_no_nan(rule: Rule, replayed: int) -> None:
    rows = torch.zeros(1 + replayed, 4)
    assert target_of(rule, rows).tolist() == [0.0] * 4
    assert rule(rows @ rows.T).isfinite().all()


@each_rule_there_is
@settings(max_examples=25)
@given(rows=gradients())
def test_a_rule_only_reads(rule: Rule, rows: Tensor) -> None:
    gram = rows @ rows.T
    before = gram.clone()
    first, second = rule(gram), rule(gram)
    assert torch.equal(gram, before)
    assert torch.equal(first, second)


@pytest.mark.parametrize(
    "build",
    [
        PrincipalDirection,
        lambda: ProximalRule(_softened_products),
        GradientSum,
        WeightedSum,
        AveragedProjection,
    ],
)
def test_rules_with_the_same_settings_are_equal(build: Callable[[], Rule]) -> None:
    assert build() == build()
