"""Everything a learner is, as a checkpoint, and back."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from recollect.checkpoint import Checkpoint, pack, unpack
from recollect.errors import CheckpointError
from recollect.memory import Memory

if TYPE_CHECKING:
    from recollect.learner.learner import Learner


def describe(part: object) -> str:
    """Name a part and its settings, the same in every process."""
    if part is None:
        return "none"
    kind = type(part)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if not dataclasses.is_dataclass(part):
        return name
    settings = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
    return f"{name}({', '.join(f'{key}={_shown(value)}' for key, value in settings.items())})"


def _shown(value: object) -> str:
    if isinstance(value, functools.partial):
        given = ", ".join(
            [*map(repr, value.args), *(f"{k}={v!r}" for k, v in value.keywords.items())]
        )
        return f"partial({_shown(value.func)}, {given})"
    if callable(value):  # a repr would hold an address
        return getattr(value, "__qualname__", type(value).__qualname__)
    return repr(value)


def learner_checkpoint(learner: "Learner") -> Checkpoint:
    """Collect model, optimizer, memory, policies, counters and generators."""
    tensors: dict[str, Tensor] = {}
    for name, tensor in _model_tensors(learner.model).items():
        tensors[f"model.{name}"] = tensor
    optimizer = pack(learner.optimizer.state_dict(), "optimizer", tensors)
    memory_facts: dict[str, object] | None = None
    if learner.memory is not None:
        memory_tensors, memory_facts = learner.memory.state()
        tensors |= {f"memory.{name}": tensor for name, tensor in memory_tensors.items()}
    if learner.storage is not None:
        tensors |= {f"storage.{name}": t for name, t in learner.storage.state().items()}
    for name, generator in learner.generators.items():
        tensors[f"generator.{name}"] = generator.get_state()
    facts: dict[str, object] = {
        "parts": _parts(learner),
        "optimizer": optimizer,
        "memory": memory_facts,
        "step": learner.step,
        "seen": learner.seen,
        "torch": torch.__version__,
    }
    extra = {path: module.get_extra_state() for path, module in _with_extra_state(learner.model)}
    if extra:
        facts["extra state"] = pack(extra, "extra state", tensors)
    return Checkpoint(tensors, facts)


def restore_learner(learner: "Learner", checkpoint: Checkpoint) -> None:
    """Check that `checkpoint` fits, then, and only then, take it over."""
    facts = checkpoint.facts
    _refuse_other_parts(_parts(learner), cast("Mapping[str, object]", facts["parts"]))
    model = _model_tensors(learner.model)
    saved_model = checkpoint.within("model")
    _refuse_other_model(model, saved_model)
    extra = _saved_extra_state(learner.model, checkpoint)
    optimizer_state = cast("dict[str, object]", unpack(facts["optimizer"], checkpoint.tensors))
    memory = None
    if learner.memory is not None:
        memory_facts = cast("Mapping[str, object]", facts["memory"])
        memory = Memory.from_state(
            checkpoint.within("memory"), memory_facts, device=learner.memory.device
        )
    # Nothing above changed the learner; nothing below can fail on a checkpoint that got this far,
    # but for what the model does with its extra state.
    for path, module in _with_extra_state(learner.model):
        module.set_extra_state(extra[path])
    with torch.no_grad():
        for name, tensor in model.items():
            tensor.copy_(saved_model[name])
    learner.optimizer.load_state_dict(optimizer_state)
    if memory is not None and learner.memory is not None:
        learner.memory.take_over(memory)
    if learner.storage is not None:
        learner.storage.restore(checkpoint.within("storage"))
    for name, generator in learner.generators.items():
        generator.set_state(checkpoint.tensors[f"generator.{name}"])
    learner.step, learner.seen = int(str(facts["step"])), int(str(facts["seen"]))


def _parts(learner: "Learner") -> dict[str, object]:
    parts: dict[str, object] = {
        "optimizer": type(learner.optimizer).__qualname__,
        "optimizer groups": [len(group["params"]) for group in learner.optimizer.param_groups],
        "capacity": None if learner.memory is None else learner.memory.capacity,
        "storage": describe(learner.storage),
        "retrieval": describe(learner.retrieval),
        "rule": describe(learner.rule),
        "iterations": learner.iterations,
        "passes": learner.passes,
        "generators": {n: str(g.device.type) for n, g in learner.generators.items()},
    }
    if any(isinstance(layer, _BatchNorm) for layer in learner.model.modules()):
        # Elsewhere it decides nothing, and must not part checkpoints from learners.
        parts["weighs"] = learner.weighs
    return parts


def _refuse_other_parts(mine: Mapping[str, object], saved: Mapping[str, object]) -> None:
    differing = [
        f"{key}: the checkpoint has {saved.get(key)}, this learner has {value}"
        for key, value in mine.items()
        if saved.get(key) != value
    ]
    if differing:
        raise CheckpointError(
            "the checkpoint was made by another kind of learner; nothing was loaded. Build the "
            "learner as it was built when it was saved. " + "; ".join(differing) + "."
        )


def _refuse_other_model(mine: Mapping[str, Tensor], saved: Mapping[str, Tensor]) -> None:
    missing, extra = sorted(mine.keys() - saved.keys()), sorted(saved.keys() - mine.keys())
    reshaped = [
        f"{name}: {tuple(saved[name].shape)} {saved[name].dtype} saved, "
        f"{tuple(mine[name].shape)} {mine[name].dtype} here"
        for name in sorted(mine.keys() & saved.keys())
        if saved[name].shape != mine[name].shape or saved[name].dtype != mine[name].dtype
    ]
    if missing or extra or reshaped:
        raise CheckpointError(
            "the checkpoint holds another model; nothing was loaded. "
            f"Not in the checkpoint: {missing}; only there: {extra}; different: {reshaped}."
        )


def _model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """List weights and all buffers, also those `state_dict` leaves out; tied ones once."""
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def _with_extra_state(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """List the modules that keep more than parameters and buffers, as torch finds them."""
    return [
        (path, module)
        for path, module in model.named_modules()
        if type(module).get_extra_state is not nn.Module.get_extra_state
    ]


def _saved_extra_state(model: nn.Module, checkpoint: Checkpoint) -> Mapping[str, object]:
    saved = checkpoint.facts.get("extra state")
    found = {} if saved is None else cast("dict[str, object]", unpack(saved, checkpoint.tensors))
    wanted = [path for path, _ in _with_extra_state(model)]
    if set(wanted) != found.keys():
        raise CheckpointError(
            "the checkpoint holds another model; nothing was loaded. It has the extra state of "
            f"{sorted(found)}, this model has extra state of {sorted(wanted)}."
        )
    return found
