"""Modules without a formula: `torch.func` over their own inputs, exact if examples stay apart."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.func import functional_call, vjp, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from recollect.errors import UnsupportedModuleError
from recollect.gradients.groups import Groups
from recollect.gradients.layout import Layout
from recollect.gradients.precision import autocast_again
from recollect.gradients.share import ExplicitShare

Arguments = tuple[tuple[object, ...], dict[str, object]]


@dataclass(frozen=True)
class ModuleCall:
    """A call to run again: who, with what, for which parameters, and what came out."""

    path: str
    module: nn.Module
    arguments: Arguments
    parameters: Mapping[str, str]  # local name -> name in the model
    differentiable: Sequence[int]  # which of the returned tensors have cotangents
    outputs: Sequence[Tensor] | None  # to check that examples are independent, while planning
    autocast: torch.dtype | None  # what was on during the call
    rounding: float  # `eps` of the coarsest numbers in the pass


def tensors_in(value: object) -> list[Tensor]:
    """List the tensors in tuples, lists and dicts; other things are passed over."""
    if isinstance(value, Tensor):
        return [value]
    if type(value) is tuple and len(value) == 1 and isinstance(value[0], Tensor):
        return [value[0]]  # the arguments of nearly every call
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [leaf for entry in value for leaf in tensors_in(entry)]
    return []


def fallback_share(
    call: ModuleCall, cotangents: Sequence[Tensor], *, layout: Layout, groups: Groups
) -> ExplicitShare:
    """Run the module again one example at a time under `vmap`, and pull the cotangents back.

    Raises:
        UnsupportedModuleError: examples do not stand alone in this module.
    """
    if layout == "folded":
        raise UnsupportedModuleError(
            f"layer `{call.path}` ({type(call.module).__name__}) gets examples folded into its "
            "first dimension and has no formula here; reshape to one row an example before it."
        )
    preferred = 0 if layout == "first" else 1
    count = groups.num_examples
    batched = {
        id(leaf): (leaf, dim)
        for leaf in tensors_in(call.arguments)
        if (dim := _example_dim(leaf, preferred, count)) is not None
    }
    out_dims = [_example_dim(cotangent, preferred, count) or 0 for cotangent in cotangents]
    gradient = _gradient_of_one(call, {key: dim for key, (_, dim) in batched.items()}, out_dims)
    examples = [leaf.detach().movedim(dim, 0) for leaf, dim in batched.values()]
    pulled = [c.movedim(dim, 0) for c, dim in zip(cotangents, out_dims, strict=True)]
    try:
        # The fused attention kernels have no batching rule; the plain one is made of parts that do.
        with sdpa_kernel(SDPBackend.MATH):
            gradients, results = vmap(gradient, randomness="different")(examples, pulled)
    except RuntimeError:
        # No batching rule for an operator in there (recurrent kernels, for one): one by one.
        each = [gradient([e[i] for e in examples], [p[i] for p in pulled]) for i in range(count)]
        gradients = {name: torch.stack([g[name] for g, _ in each]) for name in call.parameters}
        results = [torch.stack(column) for column in zip(*(r for _, r in each), strict=True)]
    if call.outputs is not None:
        alone = [
            result.squeeze(dim + 1).movedim(0, dim)
            for result, dim in zip(results, out_dims, strict=True)
        ]
        _check_alone_as_together(call, alone)
    rows = {call.parameters[name]: groups.sum(found) for name, found in gradients.items()}
    return ExplicitShare(rows, groups)


def _example_dim(tensor: Tensor, preferred: int, count: int) -> int | None:
    """Find the dimension that counts examples; recurrent states keep it second, layers first."""
    for dim in (preferred, 1 - preferred):
        if tensor.ndim > dim and tensor.shape[dim] == count:
            return dim
    return None


def _gradient_of_one(
    call: ModuleCall, in_dims: Mapping[int, int], out_dims: Sequence[int]
) -> Callable[[list[Tensor], list[Tensor]], tuple[dict[str, Tensor], list[Tensor]]]:
    """Build the function of one example and its cotangents that `vmap` can spread.

    Args:
        call: What to run again.
        in_dims: Where examples stand in each batched argument, by the tensor's id.
        out_dims: Where they stand in each differentiable result.
    """
    own = {
        local: p.detach() for local, p in call.module.named_parameters() if local in call.parameters
    }
    # Buffers are passed as copies: a normalisation inside must not move its statistics again.
    buffers = {name: buffer.clone() for name, buffer in call.module.named_buffers()}
    first_names = _first_names(call.module)

    def gradient(
        examples: list[Tensor], pulled: list[Tensor]
    ) -> tuple[dict[str, Tensor], list[Tensor]]:
        one = {
            key: example.unsqueeze(dim)
            for (key, dim), example in zip(in_dims.items(), examples, strict=True)
        }
        args, kwargs = cast("Arguments", _with_examples(call.arguments, one))

        def forward(own: dict[str, Tensor]) -> list[Tensor]:
            held = {**own, **buffers}
            tied = {name: held[first] for name, first in first_names.items() if first in held}
            with autocast_again(call.autocast, pulled[0].device):
                returned = tensors_in(
                    functional_call(call.module, tied, args, kwargs, tie_weights=False)
                )
            return [returned[index] for index in call.differentiable]

        results, pull_back, *_ = vjp(forward, own)
        (gradients,) = pull_back([c.unsqueeze(d) for c, d in zip(pulled, out_dims, strict=True)])
        return gradients, results

    return gradient


def _first_names(module: nn.Module) -> dict[str, str]:
    """Map the names of parameters and buffers to the first name of the same tensor.

    A module that stands in two places goes by its first path alone: `functional_call`, left to tie
    weights itself, takes it for two and does not put its own tensors back.
    """
    first: dict[int, str] = {}
    names: dict[str, str] = {}
    for path, holder in module.named_modules():
        own = holder.named_parameters(recurse=False, remove_duplicate=False)
        buffers = holder.named_buffers(recurse=False, remove_duplicate=False)
        for local, tensor in (*own, *buffers):
            name = f"{path}.{local}" if path else local
            names[name] = first.setdefault(id(tensor), name)
    return names


def _with_examples(value: object, one: Mapping[int, Tensor]) -> object:
    """Rebuild call arguments with each batched tensor replaced by its one example."""
    if isinstance(value, Tensor):
        return one.get(id(value), value)
    if isinstance(value, Mapping):
        return {key: _with_examples(entry, one) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return type(value)([_with_examples(entry, one) for entry in value])
    return value


def _close(alone: Tensor, together: Tensor, rounding: float) -> bool:
    return torch.allclose(
        alone, together, rtol=max(1e-3, 8 * rounding), atol=max(1e-5, 8 * rounding)
    )


def _check_alone_as_together(call: ModuleCall, results: Sequence[Tensor]) -> None:
    assert call.outputs is not None
    pairs = zip(results, call.outputs, strict=True)
    if all(_close(alone, together, call.rounding) for alone, together in pairs):
        return
    raise UnsupportedModuleError(
        f"layer `{call.path}` ({type(call.module).__name__}) gives an example another output when "
        "it comes alone: examples mix in it, or it draws random numbers, so the gradient of one "
        "example is not defined. Use a layer that keeps examples apart (GroupNorm, LayerNorm), "
        "switch its randomness off, or use `GradientSum`, which needs no per-example gradients."
    )
