"""A learner on vectors of numbers, built when the first batch tells their length."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from recollect.learner import LabelMap, Learner
from recollect.methods import method as build_method
from recollect.models import mlp, seeded, with_growing_head

BuildModel = Callable[[int, int], nn.Module]
BuildOptimizer = Callable[[Any], torch.optim.Optimizer]


def vector_learner(  # noqa: PLR0913 - what both classifiers take
    method: str,
    *,
    in_features: int,
    classes: Sequence[Hashable],
    model: BuildModel | None,
    optimizer: BuildOptimizer | None,
    capacity: int,
    replay: int,
    seed: int,
    options: Mapping[str, Any] | None,
) -> Learner:
    """Build a learner for vectors and classes by any name.

    Args:
        method: Such as `"er"`.
        in_features: Length of the vectors.
        classes: Those known from the start; others get outputs when they come.
        model: `model(in_features, num_classes)` builds the network. None: an MLP of 100 and 100
            units, whose head grows with the classes.
        optimizer: `optimizer(parameters)` builds the optimizer. None: Adam with learning rate
            0.003, which bounds each step whatever the scale of the features.
        capacity: Slots of the memory.
        replay: Examples replayed with each batch.
        seed: Of the weights and of the learner.
        options: Others of `recollect.method`.
    """
    network = seeded(partial(model or _growing_mlp, in_features, max(2, len(classes))), seed)
    build_optimizer = optimizer or partial(torch.optim.Adam, lr=0.003)
    return build_method(
        method,
        network,
        build_optimizer(network.parameters()),
        capacity=capacity,
        replay=replay,
        seed=seed,
        label_map=LabelMap(classes),
        **(options or {}),
    )


def _growing_mlp(in_features: int, num_classes: int) -> nn.Module:
    return with_growing_head(mlp(in_features, num_classes))
