"""WEIGH: pure functions from the Gram matrix of (g, g_1..g_K) to one weight per gradient."""

from recollect.rules.averaged_projection import AveragedProjection
from recollect.rules.clipped_sum import ClippedSum
from recollect.rules.gradient_sum import GradientSum
from recollect.rules.principal_direction import PrincipalDirection
from recollect.rules.proximal import ProximalRule
from recollect.rules.rule import Rule
from recollect.rules.weighted_sum import WeightedSum

__all__ = [
    "AveragedProjection",
    "ClippedSum",
    "GradientSum",
    "PrincipalDirection",
    "ProximalRule",
    "Rule",
    "WeightedSum",
]
