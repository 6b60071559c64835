"""Networks whose layers let examples see each other."""

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


def mixes_examples(model: nn.Module) -> bool:
    """Whether a layer of `model`, as it stands now, makes one example's loss depend on others."""
    return any(
        isinstance(layer, _BatchNorm) and (layer.training or not layer.track_running_stats)
        for layer in model.modules()
    )
