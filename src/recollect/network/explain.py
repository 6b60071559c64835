"""Say what a model, a transform or a loss was given when it fails, and what would be right."""

import inspect
from types import TracebackType
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

from recollect.errors import RecollectError
from recollect.ragged import Ragged

# What torch, and Python around it, raise where a batch does not fit. Interrupts, warnings and
# failed assertions pass as they are.
EXPLAINED: Final = (RuntimeError, LookupError, TypeError, ValueError, AttributeError)


def model_failed(error: Exception, model: nn.Module, inputs: object) -> Exception:
    """Return what to raise from an error of the model's.

    Args:
        error: The model's own.
        model: The model.
        inputs: What it was given.
    """
    layer = _failing_layer(error.__traceback__, model)
    where = "" if layer is None else str(layer)
    fix = (
        _signature(model, inputs)
        or (layer and layer.fix())
        or ("Pass inputs that the model takes, or let `transform` make them of what you pass.")
    )
    return _explained(
        error, f"the model, given `inputs` as {described(inputs)}, failed{where}", fix
    )


def transform_failed(error: Exception, inputs: object, *, what: str = "transform") -> Exception:
    """Return what to raise from an error of a function that changes inputs."""
    fix = "Pass inputs that it takes, or change it."
    return _explained(error, f"`{what}`, given `inputs` as {described(inputs)}, failed", fix)


def loss_failed(error: Exception, outputs: object, labels: object) -> Exception:
    """Return what to raise from an error of the loss's."""
    found = f"given `labels` as {described(labels)} and outputs as {described(outputs)}"
    fix = _fix_of_labels(outputs, labels) or "Pass labels that it takes, or change it."
    return _explained(error, f"`loss`, {found}, failed", fix)


def described(value: object) -> str:
    """Name shapes and dtypes, in the structure they come in."""
    if isinstance(value, Tensor):
        return f"{value.dtype} of shape {tuple(value.shape)}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {described(held)}" for key, held in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "(" + ", ".join(map(described, value)) + ("," if len(value) == 1 else "") + ")"
    return repr(value) if isinstance(value, Ragged) else f"a {type(value).__name__}"


def _explained(error: Exception, what: str, fix: str) -> Exception:
    """Join what failed, the reason that was given, and the fix; the kinds are those of checks."""
    if isinstance(error, RecollectError) or _is_out_of_memory(error):
        return error
    kind = TypeError if isinstance(error, TypeError) else ValueError
    reason = str(error).strip().partition("\n")[0].rstrip(".")
    return kind(f"{what}: {reason or type(error).__name__}. {fix} Nothing was changed.")


def _is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


class _Layer:
    """A layer that failed, and what it was given."""

    def __init__(self, path: str, module: nn.Module, given: Tensor | None) -> None:
        self._path, self._module, self._given = path, module, given

    def __str__(self) -> str:
        name = repr(self._module).partition("\n")[0].rstrip("(")
        given = "" if self._given is None else f", which was given {described(self._given)}"
        return f" in layer `{self._path}`, {name}{given}" if self._path else ""

    def fix(self) -> str | None:
        """Say what would be right, where it is known."""
        if self._given is None:
            return None
        if isinstance(self._module, nn.Embedding | nn.EmbeddingBag):
            return _fix_of_entries(self._module.num_embeddings, self._given)
        weight = getattr(self._module, "weight", None)
        if isinstance(weight, Tensor) and weight.dtype != self._given.dtype:
            return _fix_of_dtype(self._given.dtype, weight.dtype)
        return self._fix_of_shape(self._given.shape)

    def _fix_of_shape(self, shape: torch.Size) -> str | None:
        layer = self._module
        if isinstance(layer, nn.Linear):
            return f"It takes {layer.in_features} features, in the last dimension."
        if isinstance(layer, nn.LayerNorm):
            return f"It takes {tuple(layer.normalized_shape)} in the last dimensions."
        if isinstance(layer, _ConvNd):
            sides = len(layer.kernel_size)
            smallest = (
                ""
                if isinstance(layer, _ConvTransposeNd)
                else (f", none of them smaller than its kernel {layer.kernel_size}")
            )
            return (
                f"It takes {sides + 2} dimensions: examples, {layer.in_channels} channels, and "
                f"{sides} more{smallest}."
            )
        if isinstance(layer, _NormBase):
            if len(shape) > 1 and shape[1] == layer.num_features:
                return (
                    "Pass more examples at a time: one value has no deviation. GroupNorm and "
                    "LayerNorm take a single example."
                )
            return f"It takes {layer.num_features} channels, in the second dimension."
        return None


def _failing_layer(trace: TracebackType | None, model: nn.Module) -> _Layer | None:
    """Find the innermost of the model's modules in whose call the error was raised."""
    paths = {id(module): path for path, module in model.named_modules()}
    found = None
    while trace is not None:
        frame = trace.tb_frame
        code, held = frame.f_code, frame.f_locals
        module = held.get("self")
        if code.co_name in ("forward", "_conv_forward") and id(module) in paths:
            assert isinstance(module, nn.Module)
            names = code.co_varnames[1 : code.co_argcount]
            given = next((held[n] for n in names if isinstance(held.get(n), Tensor)), None)
            found = _Layer(paths[id(module)], module, given)
        trace = trace.tb_next
    return found


def _signature(model: nn.Module, inputs: object) -> str | None:
    """Say which arguments the model takes, if it takes others than it was given."""
    try:
        signature = inspect.signature(model.forward)
    except (TypeError, ValueError):
        return None
    try:
        if isinstance(inputs, dict):
            signature.bind(**inputs)
        else:
            signature.bind(*(inputs if isinstance(inputs, tuple | list) else (inputs,)))
    except TypeError:
        names = ", ".join(f"`{name}`" for name in signature.parameters)
        return (
            f"Its `forward` takes {names}; pass a dict with these names, a tuple in this order, or "
            "a tensor if there is one."
        )
    return None


def _fix_of_dtype(given: torch.dtype, wanted: torch.dtype) -> str:
    """Say how numbers come to the precision of weights."""
    if given.is_complex:
        return f"Its weights are {wanted}: let `transform` make real numbers of complex ones."
    if given.is_floating_point:
        return (
            f"Its weights are {wanted}: pass `inputs.to({wanted})`, or bring the model to your "
            f"precision with `model.to({given})`."
        )
    return (
        f"Its weights are {wanted}: pass `inputs.to({wanted})`, or store whole numbers and let "
        "`transform` make real ones of them, as `lambda x: x / 255` does of images."
    )


def _fix_of_entries(count: int, given: Tensor) -> str | None:
    if given.dtype not in (torch.int64, torch.int32):
        return "It looks whole numbers up: pass `inputs.long()`."
    if not given.numel():
        return None
    smallest, largest = int(given.min()), int(given.max())
    if smallest >= 0 and largest < count:
        return None
    return (
        f"Its input holds {smallest if smallest < 0 else largest}, and it has {count} entries: "
        f"pass numbers from 0 to {count - 1}, or give it more entries."
    )


def _fix_of_labels(outputs: object, labels: object) -> str | None:
    if not isinstance(labels, Tensor) or not isinstance(outputs, Tensor):
        return None
    if labels.dtype.is_complex:
        return "Pass real labels."
    if not labels.dtype.is_floating_point and labels.dtype != torch.int64:
        return "Losses take classes as torch.int64: pass `labels.long()`."
    if labels.dtype != torch.int64 or labels.ndim != 1 or outputs.ndim < 2 or not len(labels):
        return None
    count, smallest, largest = outputs.shape[1], int(labels.min()), int(labels.max())
    if smallest >= 0 and largest < count:
        return None
    return (
        f"`labels` holds {smallest if smallest < 0 else largest}, and the model has {count} "
        f"outputs: classes run from 0 to {count - 1}."
    )
