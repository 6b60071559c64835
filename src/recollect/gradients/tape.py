"""Record the calls of a forward pass, then measure from them."""

from typing import TYPE_CHECKING, Any

from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.graph import get_gradient_edge

from recollect.gradients.calls import Call
from recollect.gradients.fallback import tensors_in
from recollect.gradients.groups import Groups
from recollect.gradients.measurement import Measurement
from recollect.gradients.objective import Objective
from recollect.gradients.precision import running_autocast
from recollect.gradients.weighed_losses import WeighedLosses

if TYPE_CHECKING:
    from recollect.gradients.engine import GradientEngine


class Tape:
    """What a recorded forward pass left behind."""

    def __init__(self, engine: "GradientEngine", *, planning: bool) -> None:
        self._engine = engine
        self._planning = planning
        self._calls: list[Call] = []

    def keep(
        self,
        path: str,
        module: nn.Module,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        output: Any,
    ) -> None:
        """Forward hook: remember inputs and the place of the outputs in the autograd graph."""
        # An edge, not the tensor: a later in-place operation gives the tensor another history.
        returned = tensors_in(output)
        differentiable = [i for i, result in enumerate(returned) if result.requires_grad]
        if not differentiable:
            return
        results = [returned[i] for i in differentiable]
        given = tensors_in(args) + (tensors_in(kwargs) if kwargs else [])
        self._calls.append(
            Call(
                path,
                module,
                args,
                kwargs,
                given,
                [tensor._version for tensor in given],
                edges=[get_gradient_edge(result) for result in results],
                differentiable=differentiable,
                shapes=[result.shape for result in results],
                outputs=[result.detach().clone() for result in results] if self._planning else None,
                autocast=running_autocast(results[0].device),
            )
        )

    def measure(
        self,
        losses: Float[Tensor, " examples"],
        coefficients: Float[Tensor, " examples"],
        groups: Groups,
        scales: Float[Tensor, " groups"],
    ) -> Measurement:
        """Measure the gradients of `groups` from the losses this pass led to.

        Args:
            losses: One loss an example.
            coefficients: The objective whose backward pass is run is `coefficients . losses`.
            groups: Which examples belong together; a group's share is the sum over its examples.
            scales: Factor that turns a group's share into the gradient that is meant.
        """
        calls, self._calls = self._calls, []
        return self._engine.measure(calls, Objective(losses, coefficients, groups, scales))

    def measure_losses(self, objective: Objective, *, to_be_joined: bool) -> WeighedLosses:
        """As `measure`, but weights will multiply losses instead of shares.

        Args:
            objective: What `measure` takes apart.
            to_be_joined: Keep shares, for inner products with those of another pass.
        """
        calls, self._calls = self._calls, []
        engine = self._engine
        if not to_be_joined:
            gram = engine.gram(calls, objective)
            return WeighedLosses([], objective, engine.parameters, gram=gram)
        kept = engine.measure(calls, objective, keep_graph=True)
        return WeighedLosses(list(kept.shares.values()), objective, engine.parameters)
