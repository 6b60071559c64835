"""WEIGH: pure functions from the Gram matrix of (g, g_1..g_K) to one weight per gradient."""

from recollect.rules.averaged_projection import AveragedProjection
from recollect.rules.cagrad import CAGrad
from recollect.rules.clipped_sum import ClippedSum
from recollect.rules.gradient_sum import GradientSum
from recollect.rules.mgda import MGDA
from recollect.rules.pcgrad import PCGrad
from recollect.rules.principal_direction import PrincipalDirection
from recollect.rules.proximal import ProximalRule
from recollect.rules.rule import Rule
from recollect.rules.upgrad import UPGrad
from recollect.rules.weighted_sum import WeightedSum

__all__ = [
    "MGDA",
    "AveragedProjection",
    "CAGrad",
    "ClippedSum",
    "GradientSum",
    "PCGrad",
    "PrincipalDirection",
    "ProximalRule",
    "Rule",
    "UPGrad",
    "WeightedSum",
]
