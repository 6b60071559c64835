"""What a pass through the model is asked, and what it answers.

`ByAutograd` passes any model, `ByHand` passes a small perceptron faster; `Network` chooses in one
place.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from recollect.gradients import Groups, Measurement, Products
from recollect.network.batch import Batch

Gradients = dict[str, Tensor]
Numbers = Callable[[torch.dtype, torch.device], Tensor]  # made to suit the losses


@dataclass(frozen=True, slots=True)
class Request:
    """Which gradients a pass is to measure.

    Attributes:
        coefficients: One per example; the pass goes back from `coefficients . losses`.
        groups: Which examples belong together.
        scales: One per group; the factor that turns its share into the gradient that is meant.
        weighs_losses: Whether weights will multiply losses instead of shares (note P8).
        is_joined: Whether another pass will be joined to this one.
        products: Which inner products will be asked for.
    """

    coefficients: Numbers
    groups: Groups
    scales: Numbers
    weighs_losses: bool = False
    is_joined: bool = False
    products: Products = "matrix"


@dataclass(slots=True)
class Pass:
    """A forward and backward pass: losses and outputs by example, and the gradients found.

    `gradients` is the gradient of the losses, added up with the coefficients asked for, or a
    measurement of each part's or example's gradient.
    """

    losses: Float[Tensor, " examples"]
    outputs: object | None  # see `by_example`
    gradients: Gradients | Measurement


class Way(ABC):
    """A way through the model. `prepared` is what the model takes."""

    @abstractmethod
    def outputs(self, prepared: object) -> Any:
        """Return what the model answers."""

    @abstractmethod
    def losses(self, prepared: object, batch: Batch) -> tuple[object, Float[Tensor, " examples"]]:
        """Return what the model answers, and each example's loss."""

    @abstractmethod
    def differentiate(self, prepared: object, batch: Batch, coefficients: Numbers) -> Pass:
        """Return the gradient of `coefficients . losses`."""

    @abstractmethod
    def measure(self, prepared: object, batch: Batch, request: Request) -> Pass:
        """Measure the gradients of groups of examples."""
