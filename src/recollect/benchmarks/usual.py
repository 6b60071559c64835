"""What to use by default: a model, a scaling and settings that fit the data."""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from recollect.benchmarks.defaults import Defaults
from recollect.benchmarks.protocols import Recipe
from recollect.benchmarks.scaling import as_given, centred, flat_unit
from recollect.datasets import LabelledData
from recollect.models import SequenceTransformer, mlp, reduced_resnet18


def is_colour_image(inputs: Tensor) -> bool:
    """Say whether inputs are square colour images that the reduced ResNet18 takes."""
    # The reduced ResNet18 needs three channels, a square, and 25 pixels for its final 4x4 mean.
    return (
        inputs.ndim == 4
        and inputs.shape[1] == 3
        and inputs.shape[2] == inputs.shape[3]
        and inputs.shape[2] >= 25
    )


def usual_model(data: LabelledData, recipe: Recipe | None = None) -> Callable[[], nn.Module]:
    """Return a builder of the reduced ResNet18 for colour images, of an MLP for the rest.

    A recipe may say otherwise: a transformer if inputs are words, an MLP of widths of its own.
    """
    shape = data.train.inputs.shape[1:]
    num_classes = len(data.class_names)
    if recipe is not None and recipe.scaling == "words":
        return partial(SequenceTransformer, num_classes=num_classes, length=shape[0])
    if recipe is not None and recipe.hidden is not None:
        return partial(mlp, math.prod(shape), num_classes, hidden=recipe.hidden)
    if is_colour_image(data.train.inputs):
        return partial(reduced_resnet18, num_classes, image_size=shape[-1])
    return partial(mlp, math.prod(shape), num_classes)


def usual_scaling(data: LabelledData) -> Callable[[Tensor], Tensor]:
    """Return how stored inputs become model inputs."""
    if data.train.inputs.dtype != torch.uint8:
        return as_given
    return centred if is_colour_image(data.train.inputs) else flat_unit


def usual_defaults(data: LabelledData, batch_size: int) -> Defaults:
    """Return the settings of the paper's benchmark with the same model, 50 slots per class."""
    return Defaults(
        batch_size=batch_size,
        capacity=50 * len(data.class_names),
        learning_rate=0.1 if is_colour_image(data.train.inputs) else 0.05,
    )
