"""Linear layers and simple functions in a row, passed forwards and backwards by hand.

Autograd's book-keeping costs a small multilayer perceptron as much as its arithmetic. Here are the
same operations in the same order, so the results are autograd's to the bit. To be called with
gradients switched off.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeGuard, final

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.module import _has_any_global_hook
from typing_extensions import override

from recollect.gradients import Measurement
from recollect.gradients.formulas.linear import FEW, LinearShare
from recollect.gradients.groups import Groups
from recollect.gradients.precision import running_autocast
from recollect.gradients.share import Share
from recollect.gradients.weighted_losses import TwoPasses
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

Names = tuple[str | None, str | None]  # of a layer's weight and bias
AtLogits = Callable[[Tensor], Tensor]  # from one coefficient per loss to the gradient at logits


@dataclass(frozen=True, slots=True)
class Layer:
    """A linear layer in one pass.

    Attributes:
        weight: Name of its weight, None if that is frozen or not measured.
        bias: Likewise.
        given: Its inputs.
        cotangents: The gradient at its outputs.
    """

    weight: str | None
    bias: str | None
    given: Float[Tensor, "examples inputs"]
    cotangents: Float[Tensor, "examples outputs"]


@final
class ByHand(Way):
    """Passes through a chain under cross entropy.

    Args:
        chain: The model.
        model: The same as its errors name it.
        limit_bytes: What measuring may take for rows that are written out.
        measured: Names of the parameters that enter inner products; None for all.
    """

    def __init__(
        self,
        chain: "Chain",
        model: nn.Module,
        limit_bytes: int,
        measured: frozenset[str] | None = None,
    ) -> None:
        self._chain, self._model, self._limit_bytes = chain, model, limit_bytes
        self._measured = measured

    def takes(self, prepared: object) -> bool:
        """Whether this pass can be taken by hand with the same result."""
        return self._chain.takes(prepared)

    @override
    def outputs(self, prepared: object) -> Any:
        return self._passed(prepared)[-1]

    @override
    def losses(self, prepared: object, batch: Batch) -> tuple[object, Float[Tensor, " examples"]]:
        labels = batch.labels.to(self._chain.device)
        logits = check_logits(self.outputs(prepared), batch.labels)
        losses, _ = cross_entropy_by_hand(logits, labels.long())
        return logits, checked_losses(losses, len(batch))

    @override
    @torch.no_grad()
    def differentiate(self, prepared: object, batch: Batch, coefficients: Numbers) -> Pass:
        passed, losses, at_logits = self._forwards(prepared, batch)
        cotangents = at_logits(coefficients(losses.dtype, losses.device))
        layers = self._chain.backward(passed, cotangents)
        return Pass(losses, passed[-1], gradients_of(layers))

    @override
    def measure(self, prepared: object, batch: Batch, request: Request) -> Pass:
        with torch.no_grad():
            passed, losses, at_logits = self._forwards(prepared, batch)
            kind = losses.dtype, losses.device
            coefficients = request.coefficients(*kind)
            repeated = None
            if self._measured is not None:
                repeated = partial(self._repeated, passed, at_logits, coefficients)
            found = ChainMeasurement(
                self._chain.backward(passed, at_logits(coefficients), self._measured),
                request.groups,
                request.scales(*kind),
                limit_bytes=self._limit_bytes,
                repeated=repeated,
            )
        return Pass(losses, passed[-1], found)

    def _repeated(
        self, passed: list[Tensor], at_logits: AtLogits, coefficients: Tensor, factors: Tensor
    ) -> dict[str, Tensor]:
        """Go back once more, with every loss's coefficient times a factor."""
        return gradients_of(self._chain.backward(passed, at_logits(coefficients * factors)))

    def _forwards(
        self, prepared: object, batch: Batch
    ) -> tuple[list[Tensor], Float[Tensor, " examples"], AtLogits]:
        passed = self._passed(prepared)
        labels = batch.labels.to(self._chain.device)
        check_logits(passed[-1], batch.labels)  # most often on the CPU: read without waiting
        losses, log_probabilities = cross_entropy_by_hand(passed[-1], labels := labels.long())
        checked_losses(losses, len(batch))
        return passed, losses, partial(cross_entropy_cotangents, log_probabilities, labels)

    def _passed(self, prepared: object) -> list[Tensor]:
        assert isinstance(prepared, Tensor)
        try:
            return self._chain.forward(prepared)
        except EXPLAINED as error:
            raise model_failed(error, self._model, prepared) from error


@final
class ChainMeasurement(Measurement):
    """Gradients of a chain, held as what its layers were given and the gradients at their outputs.

    Inner products of few examples come from those of all pairs, in three calls per layer. A
    weighted sum is that of a batch with weighted cotangents; if only some layers were measured, the
    backward pass is repeated.

    Args:
        layers: The measured layers.
        groups: Which examples belong together.
        scales: Factor by which each group's sum becomes the gradient that is meant.
        limit_bytes: What measuring may take for rows that are written out.
        repeated: Goes back again with other coefficients; None if every layer was measured.
    """

    def __init__(
        self,
        layers: list[Layer],
        groups: Groups,
        scales: Float[Tensor, " groups"],
        *,
        limit_bytes: int,
        repeated: Callable[[Tensor], dict[str, Tensor]] | None,
    ) -> None:
        self.groups, self.scales = groups, scales
        self._layers, self._limit_bytes, self._repeated = layers, limit_bytes, repeated

    @property
    @override
    def shares(self) -> Mapping[tuple[str, ...], Share]:
        shares = [
            LinearShare(
                *(layer.given, layer.cotangents),
                weight=layer.weight,
                bias=layer.bias,
                groups=self.groups,
                limit_bytes=self._limit_bytes,
            )
            for layer in self._layers
        ]
        return {tuple(sorted(share.parameters)): share for share in shares}

    @override
    def gram(self) -> Float[Tensor, "groups groups"]:
        if self.groups.num_examples > FEW:
            return super().gram()
        return self._products() * (self.scales * self.scales[:, None])

    @override
    def row(self) -> Float[Tensor, "two groups"]:
        if self.groups.num_examples > FEW:
            return super().row()
        products, scales = self._products(), self.scales
        found = torch.stack((products[0], products.diagonal()))
        return found * torch.stack((scales * scales[0], scales * scales))

    def _products(self) -> Float[Tensor, "groups groups"]:
        """Inner products of the groups' sums: (a_i . a_j + 1)(d_i . d_j) added up over layers."""
        total: Tensor | None = None
        for layer in self._layers:
            of_outputs = layer.cotangents.mm(layer.cotangents.t())
            if layer.weight is None:
                total = of_outputs if total is None else total.add_(of_outputs)
                continue
            of_inputs = layer.given.mm(layer.given.t())
            if layer.bias is not None:
                of_inputs += 1
            # As `LinearShare` adds them, so that a model passed either way learns the same bits.
            total = (
                of_inputs * of_outputs if total is None else total.addcmul_(of_inputs, of_outputs)
            )
        assert total is not None  # a chain has a layer that is measured
        members = self.groups.membership(total)
        return members @ total @ members.t()

    @override
    def combine(self, weights: Float[Tensor, " groups"]) -> dict[str, Tensor]:
        by_example = self.groups.spread(weights * self.scales)
        if self._repeated is not None:
            return self._repeated(by_example)
        return gradients_of(self._layers, by_example)

    @override
    def join(self, other: Measurement) -> Measurement:
        if not isinstance(other, ChainMeasurement) or self._repeated or other._repeated:
            return super().join(other)
        layers = [
            replace(
                mine,
                given=torch.cat((mine.given, theirs.given)),
                cotangents=torch.cat((mine.cotangents, theirs.cotangents)),
            )
            for mine, theirs in zip(self._layers, other._layers, strict=True)
        ]
        groups, scales = self.groups + other.groups, torch.cat((self.scales, other.scales))
        limit = self._limit_bytes
        return ChainMeasurement(layers, groups, scales, limit_bytes=limit, repeated=None)

    @override
    def behind(self, first: Measurement, joined: Measurement) -> Measurement:
        return joined if self._repeated is None else TwoPasses(first, self, joined)


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
        self._names: dict[int, Names] = {}  # of what is trained, by the module's place
        for index, layer in enumerate(self._modules):
            if isinstance(layer, nn.Linear):
                names = found.get(id(layer.weight)), found.get(id(layer.bias))
                if any(names):
                    self._names[index] = names

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
        self,
        passed: list[Tensor],
        cotangents: Float[Tensor, "examples classes"],
        only: frozenset[str] | None = None,
    ) -> list[Layer]:
        """Return every layer with something to differentiate, in the order of the layers.

        Args:
            passed: From `forward`.
            cotangents: The gradient at the logits.
            only: Names of the parameters that are asked for; None for all.
        """
        names = self._names if only is None else self._names_among(only)
        found: list[Layer] = []
        first = min(names)
        for index in range(len(self._modules) - 1, first - 1, -1):
            module = self._modules[index]
            if isinstance(module, nn.Linear):
                if index in names:
                    found.append(Layer(*names[index], passed[index], cotangents))
                if index > first:
                    cotangents = cotangents.mm(module.weight)
            else:
                cotangents = _BACKWARD[type(module)](cotangents, passed[index + 1])
        return found[::-1]

    def _names_among(self, only: frozenset[str]) -> dict[int, Names]:
        found = {}
        for index, (weight, bias) in self._names.items():
            names = weight if weight in only else None, bias if bias in only else None
            if any(names):
                found[index] = names
        return found


def gradients_of(
    layers: list[Layer], factors: Float[Tensor, " examples"] | None = None
) -> dict[str, Tensor]:
    """Return the gradients of the whole batch by name, each example's times a factor."""
    gradients: dict[str, Tensor] = {}
    column = None if factors is None else factors[:, None]
    for layer in layers:
        d = layer.cotangents
        if layer.weight is not None:
            scaled = d if column is None else d * column
            gradients[layer.weight] = scaled.t().mm(layer.given)
        if layer.bias is not None:
            gradients[layer.bias] = d.sum(0) if factors is None else factors @ d
    return gradients


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
