"""Networks of the benchmarks, and other last layers: one that grows, a projection."""

from collections.abc import Callable, Mapping
from typing import Final

from torch import nn

from recollect.models.growing_head import GrowingHead, with_growing_head
from recollect.models.mlp import mlp
from recollect.models.projection import Projection, with_projection
from recollect.models.reduced_resnet18 import reduced_resnet18
from recollect.models.seeded import seeded
from recollect.models.sequence_transformer import SequenceTransformer

__all__ = [
    "BUILDERS",
    "GrowingHead",
    "Projection",
    "SequenceTransformer",
    "mlp",
    "reduced_resnet18",
    "seeded",
    "with_growing_head",
    "with_projection",
]

#: What a spec can name. Arguments that follow from the data, such as `num_classes`,
#: `in_features`, `image_size` and `length`, are given by the benchmark; the others are options.
BUILDERS: Final[Mapping[str, Callable[..., nn.Module]]] = {
    "mlp": mlp,
    "reduced-resnet18": reduced_resnet18,
    "transformer": SequenceTransformer,
}
