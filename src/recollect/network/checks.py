"""Refuse what cannot be learnt from, before anything changes."""

import math
import warnings
from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.graph import Node

from recollect import nested
from recollect.errors import NonFiniteError
from recollect.memory.slot import Id
from recollect.network.batch import Batch, versions_of

#: Its square is just finite in single precision.
LARGEST_INPUT: Final = 1e19
_ROUNDING_OF_A_SUM: Final = 1e-4  # of probabilities in half precision, too
_WIDER: Final = {
    torch.uint16: torch.int32,
    torch.uint32: torch.int64,
    torch.uint64: torch.int64,
    torch.complex32: torch.complex64,
}
# Nodes of a graph that hand values on as they are, in another shape or precision.
_SHAPE_ONLY: Final = frozenset(
    {"View", "UnsafeView", "ReshapeAlias", "Squeeze", "Unsqueeze", "Transpose", "T", "Permute",
     "Clone", "ToCopy", "Alias", "Expand", "Clamp", "ClampMin", "ClampMax"}
)  # fmt: skip


def checked_batch(
    inputs: object, labels: object, *, classes: str | None, are_transformed: bool = False
) -> Batch:
    """Check one incoming batch on its own.

    Args:
        inputs: As given by the caller.
        labels: Likewise.
        classes: Who needs labels to be classes, None if nobody does.
        are_transformed: Whether inputs are made into others before the model is given them.
    """
    largest = math.inf if are_transformed else LARGEST_INPUT
    if not isinstance(labels, Tensor):
        raise TypeError(
            f"`labels` is a {type(labels).__name__} that is no tensor of numbers; pass numbers, "
            "or `label_map=LabelMap()` to `Learner` for classes of any name."
        )
    tensors = nested.tensors(inputs)
    for tensor in tensors:
        check_plain("inputs", tensor)
    _check_counts(inputs, labels)
    may_be_learnt_from = True
    for tensor in tensors:
        check_finite("inputs", tensor, largest=largest)
        may_be_learnt_from = may_be_learnt_from and not tensor.is_inference()
    if labels.requires_grad or any(tensor.requires_grad for tensor in tensors):
        # Another model's history must not come along: the memory would keep it alive for ever.
        inputs, labels = nested.map_leaves(Tensor.detach, inputs), labels.detach()
    if not may_be_learnt_from:  # autograd takes no tensor made in inference mode, but a copy
        inputs = nested.map_leaves(Tensor.clone, inputs)
    if labels.shape[0] == 0:
        raise ValueError("`inputs` is an empty batch; pass at least one example.")
    check_finite("labels", labels)
    if classes is not None:
        _check_classes(labels, classes)
    return Batch(inputs, labels, versions_of(inputs))


def _check_counts(inputs: object, labels: Tensor) -> None:
    """Refuse inputs that are not one per label."""
    columns = nested.columns(inputs)
    if not columns:
        raise ValueError("`inputs` holds no tensor; pass at least one.")
    for column in columns:
        if isinstance(column, Tensor) and column.ndim == 0:
            raise ValueError("`inputs` has no dimension for examples; add one in front.")
        if labels.ndim == 0 or len(labels) != len(column):
            count = "no" if labels.ndim == 0 else len(labels)
            raise ValueError(
                f"`labels` has {count} entries for {len(column)} `inputs`; pass one label per "
                "example."
            )


def checked_ids(ids: Sequence[Id] | None, count: int) -> list[Id] | None:
    """Refuse names that are not one distinct number or string per example."""
    if ids is None:
        return None
    named = ids.tolist() if isinstance(ids, Tensor | np.ndarray) else list(ids)
    if len(named) != count or len(set(map(str, named))) != count:
        raise ValueError(
            f"`ids` has {len(named)} entries, {len(set(map(str, named)))} of them distinct, for "
            f"{count} examples; name each example differently."
        )
    odd = [name for name in named if isinstance(name, bool) or not isinstance(name, int | str)]
    if odd:
        raise TypeError(f"`ids` holds {odd[0]!r}; name examples by whole numbers or strings.")
    return named


def checked_example_weights(
    weights: object, count: int, dtype: torch.dtype
) -> Float[Tensor, " examples"] | None:
    """Refuse weights of examples that are not one finite number from 0 up for each."""
    if weights is None:
        return None
    try:
        found = torch.as_tensor(weights).detach().to("cpu", dtype)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"`weights` is a {type(weights).__name__} that holds no numbers; pass one per example."
        ) from error
    if found.shape != (count,):
        raise ValueError(
            f"`weights` has shape {tuple(found.shape)} for {count} examples; pass one per example."
        )
    if not bool(torch.isfinite(found).all()) or bool((found < 0).any()):
        raise ValueError("`weights` holds a number that is negative or not finite; pass 0 or more.")
    return found


def check_untouched(inputs: object, versions: list[int] | None) -> None:
    """Refuse a transform or a model that writes to its inputs: the memory keeps what arrived."""
    if versions is not None and versions_of(inputs) != versions:
        raise ValueError(
            "`inputs` was changed in place by `transform` or the model, which must leave it as it "
            "came; make something new there, as `x / 255` does and `x.div_(255)` does not. What "
            "you passed is changed, so pass it afresh; nothing else is."
        )


def check_plain(name: str, tensor: Tensor) -> None:
    """Refuse tensors that torch hardly computes with: their kind, device or dtype allows little."""
    dtype = tensor.dtype
    if tensor.is_meta:
        kind, fix = "is on the device `meta`, which holds no values", "pass it from a real device"
    elif tensor.is_nested:
        kind, fix = "is a nested tensor", "pad it with `torch.nested.to_padded_tensor`"
    elif tensor.layout != torch.strided:
        kind, fix = f"has layout {tensor.layout}", "pass `to_dense()` of it"
    elif tensor.is_quantized:
        kind, fix = "is quantized", "pass `dequantize()` of it"
    elif dtype in _WIDER or (dtype.is_floating_point and dtype.itemsize == 1):
        wider = _WIDER.get(dtype, torch.float16)
        kind, fix = "has a dtype that torch stores and hardly computes with", f"pass `to({wider})`"
    else:
        return
    raise TypeError(f"`{name}` {kind} ({dtype}, shape {_shape_of(tensor)}); {fix}.")


def _shape_of(tensor: Tensor) -> str:
    return "of its own in each row" if tensor.is_nested else str(tuple(tensor.shape))


def check_finite(name: str, tensor: Tensor, *, largest: float = math.inf) -> None:
    """Refuse NaN, infinity, and in single precision numbers beyond `largest`."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    if not tensor.is_floating_point():
        return
    # One sum is much cheaper than a mask; only a suspicious one (it may overflow) is looked at.
    total = abs(tensor.sum().item())
    if total <= largest and total < math.inf:
        return
    if bool(torch.isfinite(tensor).all()):
        found = float(tensor.abs().max())
        if found > largest and tensor.dtype != torch.float64:
            raise NonFiniteError(
                f"`{name}` holds {found:.0e}, whose square is infinite in {tensor.dtype}: a model "
                "could learn nothing after it; clean it before `observe`. Nothing was learnt or "
                "stored."
            )
        return
    bad = int((~torch.isfinite(tensor)).sum())
    raise NonFiniteError(
        f"`{name}` holds {bad} NaN or infinite values out of {tensor.numel()}; clean them before "
        "`observe`. Nothing was learnt or stored."
    )


def _check_classes(labels: Tensor, who: str) -> None:
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise TypeError(
            f"`labels` has dtype {labels.dtype}, but {who} needs classes; pass whole numbers "
            "(torch.int64), or a `loss` and parts that take real targets."
        )
    if labels.ndim != 1:
        raise ValueError(
            f"`labels` has shape {tuple(labels.shape)}, but {who} needs one class per example; "
            "pass a vector."
        )
    if (smallest := int(labels.min())) < 0:
        raise ValueError(f"`labels` holds {smallest}; classes count from 0.")


def check_logits(
    outputs: object, labels: Tensor, *, views: int = 1
) -> Float[Tensor, "outputs classes"]:
    """Refuse model outputs that cannot be logits for `labels`, so many of each."""
    expected = "a (examples, classes) tensor of logits"
    if not isinstance(outputs, Tensor):
        raise TypeError(
            f"the model returned a {type(outputs).__name__}; return {expected}, for instance by "
            "wrapping the model."
        )
    if outputs.ndim != 2 or not outputs.is_floating_point():
        raise ValueError(
            f"the model returned shape {tuple(outputs.shape)} and dtype {outputs.dtype}; "
            f"return {expected}."
        )
    if outputs.shape[0] != views * labels.shape[0]:
        raise ValueError(
            f"the model returned {len(outputs)} rows for {len(labels)} examples; return {expected}."
        )
    if outputs.shape[1] < 2:
        raise ValueError(f"the model returned {outputs.shape[1]} class; return {expected}, two up.")
    largest = int(labels.max())
    if largest >= outputs.shape[1]:
        raise ValueError(
            f"`labels` holds {largest}, but the model has {outputs.shape[1]} outputs; labels run "
            f"from 0 to {outputs.shape[1] - 1}. Widen the last layer or renumber the classes."
        )
    return outputs


def check_not_probabilities(outputs: Float[Tensor, "examples classes"]) -> None:
    """Refuse outputs that have been through a softmax: cross entropy applies its own.

    Rows that sum to 1 are no proof: honest logits of few examples do so by chance, and those of a
    two-class model by symmetry. The proof is the softmax itself, in the outputs' history; where
    that does not show it (a compiled model, a softmax written by hand), this only warns.
    """
    sums_to_one = (outputs.detach().sum(1) - 1).abs().max() < _ROUNDING_OF_A_SUM
    if not (bool(sums_to_one) and bool(outputs.min() >= 0) and bool(outputs.max() <= 1)):
        return
    if _ends_in_softmax(outputs):
        raise ValueError(
            "the model's outputs are probabilities (it ends in a softmax, and each row sums to 1); "
            "return logits: drop the softmax at its end."
        )
    spread = outputs.detach().amax(0) - outputs.detach().amin(0)
    if float(spread.max()) > 100 * _ROUNDING_OF_A_SUM:  # rows all but alike are one piece of luck
        warnings.warn(
            f"the model's outputs look like probabilities: {outputs.shape[0]} different rows sum "
            "to 1 each. The default loss takes logits; if the model applies a softmax, drop it.",
            stacklevel=2,
        )


def _ends_in_softmax(outputs: Tensor) -> bool:
    node: Node | None = outputs.grad_fn
    while node is not None and _kind(node) in _SHAPE_ONLY:
        node = node.next_functions[0][0]
    return node is not None and _kind(node) == "Softmax"


def _kind(node: Node) -> str:
    return node.name().partition("Backward")[0]  # a number follows


def checked_losses(losses: object, count: int) -> Float[Tensor, " examples"]:
    """Refuse a loss function that does not give one finite loss per example."""
    if not isinstance(losses, Tensor) or losses.shape != (count,):
        shape = tuple(losses.shape) if isinstance(losses, Tensor) else type(losses).__name__
        raise ValueError(
            f"`loss` returned {shape} for {count} examples; return one loss per example "
            "(reduction='none', averaged over everything but examples)."
        )
    if not math.isfinite(losses.detach().sum().item()) and (
        bad := int((~torch.isfinite(losses)).sum())
    ):
        raise NonFiniteError(
            f"{bad} of {count} losses are NaN or infinite; lower "
            "the learning rate or look at the inputs. Nothing was learnt or stored."
        )
    return losses
