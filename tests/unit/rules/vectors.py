"""Gradients written out as vectors, so that a rule can be held against plain arithmetic on them."""

import torch
from torch import Tensor

from recollect.rules import Rule


def random_gradients(seed: int, *, replayed: int = 5, params: int = 12) -> Tensor:
    """Rows g, g_1 .. g_K of uneven lengths, in float64; lengths run from about 0.2 to 8."""
    rng = torch.Generator().manual_seed(seed)
    rows = torch.randn(1 + replayed, params, generator=rng, dtype=torch.float64)
    scales = torch.logspace(-1, 0.3, 1 + replayed, dtype=torch.float64)
    return rows * scales[torch.randperm(1 + replayed, generator=rng)].unsqueeze(1)


def target_of(rule: Rule, gradients: Tensor) -> Tensor:
    """The target gradient w that `rule` asks for: sum_k weights_k g_k."""
    return rule(gradients @ gradients.T) @ gradients


def principal_objective(
    target: Tensor, replayed: Tensor, *, norm_floor: float, target_floor: float
) -> Tensor:
    """f(w) as PrincipalDirection's docstring writes it, on vectors."""
    length = target.norm().clamp_min(target_floor)
    total = target.new_zeros(())
    for gradient in replayed:
        weight = gradient.norm().sigmoid()
        total = total - weight * (target @ gradient) / (
            length * gradient.norm().clamp_min(norm_floor)
        )
    return total


def principal_slope(
    target: Tensor, replayed: Tensor, *, norm_floor: float, target_floor: float
) -> Tensor:
    """grad f(w), by autograd on w itself."""
    target = target.detach().requires_grad_()
    value = principal_objective(target, replayed, norm_floor=norm_floor, target_floor=target_floor)
    (slope,) = torch.autograd.grad(value, target)
    return slope
