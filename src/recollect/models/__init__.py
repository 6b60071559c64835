"""The two networks of the paper's benchmarks."""

from recollect.models.mlp import mlp
from recollect.models.reduced_resnet18 import reduced_resnet18
from recollect.models.seeded import seeded

__all__ = ["mlp", "reduced_resnet18", "seeded"]
