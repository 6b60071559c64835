"""The fully connected network of MNIST-S and MNIST-P."""

from collections.abc import Sequence
from itertools import pairwise

from torch import nn


def mlp(
    in_features: int = 784, num_classes: int = 10, *, hidden: Sequence[int] = (100, 100)
) -> nn.Sequential:
    """Build a ReLU network over flattened inputs: 784-100-100-10 by default."""
    widths = [in_features, *hidden]
    layers: list[nn.Module] = [nn.Flatten()]
    for fan_in, fan_out in pairwise(widths):
        layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], num_classes))
