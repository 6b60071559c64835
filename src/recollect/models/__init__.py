"""Networks of the paper's benchmarks, and a last layer that grows."""

from recollect.models.growing_head import GrowingHead, with_growing_head
from recollect.models.mlp import mlp
from recollect.models.reduced_resnet18 import reduced_resnet18
from recollect.models.seeded import seeded

__all__ = ["GrowingHead", "mlp", "reduced_resnet18", "seeded", "with_growing_head"]
