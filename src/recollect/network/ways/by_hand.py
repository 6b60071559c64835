"""Linear layers and simple functions in a row, passed forwards and backwards by hand.

Autograd's book-keeping costs a small multilayer perceptron as much as its arithmetic. Here are the
same operations in the same order, so the results are autograd's to the bit. To be called with
gradients switched off.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeGuard, final

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.module import _has_any_global_hook
from typing_extensions import override

from recollect.gradients import Measurement
from recollect.gradients.formulas.linear import LinearShare
from recollect.gradients.groups import Groups
from recollect.gradients.precision import running_autocast
from recollect.network.batch import Batch
from recollect.network.checks import check_logits, checked_losses
from recollect.network.explain import EXPLAINED, model_failed
from recollect.network.ways.contract import Numbers, Pass, Request, Way

_aten: Final = torch.ops.aten
# How the gradient at a function's output becomes the one at its input, from the output alone.
_BACKWARD: Final[dict[type[nn.Module], Callable[[Tensor, Tensor], Tensor]]] = {
    nn.ReLU: lambda d, out: _aten.threshold_backward(d, out, 0),
    nn.Tanh: lambda d, out: _aten.tanh_backward(d, out),
    nn.Sigmoid: lambda d, out: _aten.sigmoid_backward(d, out),
    nn.Identity: lambda d, _: d,
}
_HOOKS: Final = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")

Factors = tuple[Tensor, Tensor]  # what a layer was given, and the gradient at what it gave


@final
class ByHand(Way):
    """Passes through a chain under cross entropy.

    Args:
        chain: The model.
        model: The same as its errors name it.
        limit_bytes: What measuring may take for rows that are written out.
    """

    def __init__(self, chain: "Chain", model: nn.Module, limit_bytes: int) -> None:
        self._chain, self._model, self._limit_bytes = chain, model, limit_bytes

    def takes(self, prepared: object) -> bool:
        """Whether this pass can be taken by hand with the same result."""
        return self._chain.takes(prepared)

    @override
    def outputs(self, prepared: object) -> Any:
        return self._passed(prepared)[-1]

    @override
    def losses(self, prepared: object, batch: Batch) -> tuple[object, Float[Tensor, " examples"]]:
        labels = batch.labels.to(self._chain.device)
        logits = check_logits(self.outputs(prepared), labels)
        losses, _ = cross_entropy_by_hand(logits, labels.long())
        return logits, checked_losses(losses, len(batch))

    @override
    @torch.no_grad()
    def differentiate(self, prepared: object, batch: Batch, coefficients: Numbers) -> Pass:
        logits, losses, factors = self._forwards_and_backwards(prepared, batch, coefficients)
        return Pass(losses, logits, self._chain.gradients(factors))

    @override
    def measure(self, prepared: object, batch: Batch, request: Request) -> Pass:
        with torch.no_grad():
            logits, losses, factors = self._forwards_and_backwards(
                prepared, batch, request.coefficients
            )
        shares = self._chain.shares(factors, request.groups, self._limit_bytes)
        scales = request.scales(losses.dtype, losses.device)
        return Pass(losses, logits, Measurement(shares, request.groups, scales))

    def _forwards_and_backwards(
        self, prepared: object, batch: Batch, coefficients: Numbers
    ) -> tuple[Tensor, Float[Tensor, " examples"], list[Factors]]:
        passed = self._passed(prepared)
        labels = batch.labels.to(self._chain.device)
        logits = check_logits(passed[-1], labels)
        losses, log_probabilities = cross_entropy_by_hand(logits, labels := labels.long())
        checked_losses(losses, len(batch))
        at_logits = cross_entropy_cotangents(
            log_probabilities, labels, coefficients(losses.dtype, losses.device)
        )
        return logits, losses, self._chain.backward(passed, at_logits)

    def _passed(self, prepared: object) -> list[Tensor]:
        assert isinstance(prepared, Tensor)
        try:
            return self._chain.forward(prepared)
        except EXPLAINED as error:
            raise model_failed(error, self._model, prepared) from error


class Chain:
    """A `nn.Sequential` of `Linear` layers and functions between them.

    Args:
        model: The sequence.
        parameters: The parameters to differentiate, by their name in `model`.
    """

    def __init__(self, model: nn.Sequential, parameters: Mapping[str, nn.Parameter]) -> None:
        self._modules = list(model)
        self._flattens = bool(self._modules) and type(self._modules[0]) is nn.Flatten
        self._held = list(model.parameters())
        # Looked at before every pass: dictionaries that live as long as their modules do.
        self._own = [vars(module) for module in (model, *self._modules)]
        self._hooks = [own[kind] for own in self._own for kind in _HOOKS]
        found = {id(parameter): name for name, parameter in parameters.items()}
        self._names: list[tuple[str | None, str | None]] = []
        self._first_wanted = len(self._modules)  # nothing in front of it is trained
        for index, layer in enumerate(self._modules):
            if isinstance(layer, nn.Linear):
                names = found.get(id(layer.weight)), found.get(id(layer.bias))
                if any(names):
                    self._first_wanted = min(self._first_wanted, index)
                if index >= self._first_wanted:
                    self._names.append(names)

    @property
    def device(self) -> torch.device:
        """Where it lives."""
        return self._held[0].device

    @staticmethod
    def of(model: nn.Module, parameters: Mapping[str, nn.Parameter]) -> "Chain | None":
        """Return the model as a chain, or None if it is anything else."""
        if type(model) is not nn.Sequential:
            return None
        modules = list(model)
        rest = modules[1:] if modules and _flattens_all(modules[0]) else modules
        known = all(type(module) is nn.Linear or type(module) in _BACKWARD for module in rest)
        linear = [module for module in rest if type(module) is nn.Linear]
        held = [id(p) for module in linear for p in module.parameters(recurse=False)]
        shared = len(set(map(id, modules))) < len(modules) or len(set(held)) < len(held)
        plain = all(set(module._parameters) == {"weight", "bias"} for module in linear)
        if not (known and linear and plain) or shared:
            return None
        return Chain(model, parameters)

    def takes(self, inputs: object) -> TypeGuard[Tensor]:
        """Whether this pass can be taken by hand, and nobody would notice."""
        if not isinstance(inputs, Tensor) or (inputs.ndim != 2 and not self._flattens):
            return False
        if _has_any_global_hook():  # type: ignore[no-untyped-call]
            return False
        if running_autocast(inputs.device) is not None:
            return False
        if any(self._hooks) or any("forward" in own for own in self._own):
            return False
        return not any(parameter._backward_hooks for parameter in self._held)

    def forward(self, inputs: Tensor) -> list[Tensor]:
        """Return the inputs and every module's outputs; the last are the logits."""
        passed = [inputs]
        for module in self._modules:
            passed.append(module.forward(passed[-1]))
        return passed

    def backward(
        self, passed: list[Tensor], cotangents: Float[Tensor, "examples classes"]
    ) -> list[Factors]:
        """Return inputs and cotangents of every linear layer, in the order of the layers."""
        found: list[Factors] = []
        wanted = self._first_wanted
        for index in range(len(self._modules) - 1, wanted - 1, -1):
            module = self._modules[index]
            if isinstance(module, nn.Linear):
                found.append((passed[index], cotangents))
                if index > wanted:
                    cotangents = cotangents.mm(module.weight)
            else:
                cotangents = _BACKWARD[type(module)](cotangents, passed[index + 1])
        return found[::-1]

    def gradients(self, factors: list[Factors]) -> dict[str, Tensor]:
        """Gradients of the whole batch, by name."""
        gradients: dict[str, Tensor] = {}
        for (weight, bias), (a, d) in zip(self._names, factors, strict=True):
            if weight is not None:
                gradients[weight] = d.t().mm(a)
            if bias is not None:
                gradients[bias] = d.sum(0)
        return gradients

    def shares(self, factors: list[Factors], groups: Groups, limit_bytes: int) -> list[LinearShare]:
        """Shares of the gradients of groups of examples."""
        return [
            LinearShare(a, d, weight=weight, bias=bias, groups=groups, limit_bytes=limit_bytes)
            for (weight, bias), (a, d) in zip(self._names, factors, strict=True)
        ]


def cross_entropy_by_hand(
    logits: Float[Tensor, "examples classes"], labels: Int64[Tensor, " examples"]
) -> tuple[Float[Tensor, " examples"], Float[Tensor, "examples classes"]]:
    """Return the losses and the log probabilities they come from."""
    log_probabilities = F.log_softmax(logits, 1)
    return F.nll_loss(log_probabilities, labels, reduction="none"), log_probabilities


def cross_entropy_cotangents(
    log_probabilities: Float[Tensor, "examples classes"],
    labels: Int64[Tensor, " examples"],
    coefficients: Float[Tensor, " examples"],
) -> Float[Tensor, "examples classes"]:
    """Gradient of `coefficients . losses` at the logits."""
    d = _aten.nll_loss_backward(
        coefficients, log_probabilities, labels, None, 0, -100, coefficients.new_empty(())
    )
    return _aten._log_softmax_backward_data(d, log_probabilities, 1, log_probabilities.dtype)


def _flattens_all(module: nn.Module) -> bool:
    return type(module) is nn.Flatten and (module.start_dim, module.end_dim) == (1, -1)
