"""What a recorded pass leaves behind: calls of modules, and where parameters are measured."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge

from recollect.errors import UnsupportedModuleError
from recollect.gradients.layout import Layout


@dataclass(slots=True)
class Call:
    """One call of one module during a recorded pass."""

    path: str
    module: nn.Module
    args: tuple[object, ...]
    kwargs: dict[str, object]
    given: list[Tensor]  # the tensors among the arguments
    versions: list[int]  # theirs, to notice in-place changes
    edges: list[GradientEdge]
    differentiable: list[int]  # which of the returned tensors the edges belong to
    shapes: list[torch.Size]
    outputs: list[Tensor] | None  # values, kept while a plan is being made
    autocast: torch.dtype | None  # what was on during the call
    layout: Layout = "first"
    statistics: tuple[Tensor, Tensor] | None = None  # what BatchNorm's pass kept, if known


@dataclass(frozen=True)
class Unit:
    """A module and the parameters whose gradients are taken there."""

    path: str
    parameters: Mapping[str, str]  # local name -> name in the model
    direct: bool


def no_place_for_examples(call: Call, num_examples: int) -> UnsupportedModuleError:
    """Say that a layer does not keep examples apart, and what to do."""
    return UnsupportedModuleError(
        f"{_returned(call, num_examples)}, and the loss of one example reaches several rows of it: "
        "examples mix before, in or behind this layer, so the gradient of one example is not "
        "defined. Keep examples apart in the first dimension, or use `GradientSum`, which needs no "
        "per-example gradients."
    )


def refused_further_out(call: Call, num_examples: int, error: Exception) -> UnsupportedModuleError:
    """Say why a layer's parameters were not measured there, and what came in the way elsewhere."""
    reason = str(error)
    if not isinstance(error, UnsupportedModuleError):  # the model's own
        reason = (
            f"a pass of one example alone failed there ({type(error).__name__}: {error}). Let the "
            "model take one example, or use `GradientSum`, which needs no per-example gradients."
        )
    return UnsupportedModuleError(
        f"{_returned(call, num_examples)}, which does not keep them apart, so its parameters were "
        f"measured further out, but {reason}"
    )


def _returned(call: Call, num_examples: int) -> str:
    shapes = " and ".join(str(tuple(shape)) for shape in call.shapes)
    kind = type(call.module).__name__
    return f"layer `{call.path}` ({kind}) returns {shapes} for {num_examples} examples"
