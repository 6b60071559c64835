"""Everything a learner is, as a checkpoint, and back."""

import copy
import dataclasses
import functools
from collections.abc import Collection, Hashable, Mapping
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from recollect.checkpoint import Checkpoint, pack, unpack
from recollect.errors import CheckpointError
from recollect.learner.saved.checks import (
    check_generators,
    check_labels,
    check_model,
    check_optimizer,
    check_parts,
    check_scores,
    check_size,
    checked_count,
    refuse,
)
from recollect.learner.saved.rehearsal import rehearse
from recollect.learner.saved.takeover import take_over_whole
from recollect.memory import Codec, Memory
from recollect.memory.resizing import resized
from recollect.memory.saved import MOST, all_finite, checked_state
from recollect.rollback.transaction import Transaction

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
    settings = {
        field.name: getattr(part, field.name)
        for field in dataclasses.fields(part)
        # Left out at its default: files of before the field was there are of the same part.
        if not (field.metadata.get("later") and getattr(part, field.name) == field.default)
    }
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
    tensors |= {f"predictor.{name}": t for name, t in learner.predictor.state().items()}
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
    if learner.label_map is not None:
        facts["label map"] = learner.label_map.state()
    if learner.objective.needs_classes_seen:
        facts["classes seen"] = learner._classes_seen.numbers.tolist()
    extra = {path: module.get_extra_state() for path, module in _with_extra_state(learner.model)}
    if extra:
        facts["extra state"] = pack(extra, "extra state", tensors)
    checkpoint = Checkpoint(tensors, facts)
    _refuse_to_save(learner, checkpoint)
    return checkpoint


def _refuse_to_save(learner: "Learner", checkpoint: Checkpoint) -> None:
    """Refuse a state that could not be loaded again, before it takes a good one's place."""
    try:
        check_model(_model_tensors(learner.model), checkpoint.within("model"))
        _check_statistics(learner.model)
        state = learner.optimizer.state_dict()
        check_optimizer(state, state)
        if learner.memory is not None and learner.storage is not None:
            facts = cast("Mapping[str, object]", checkpoint.facts["memory"])
            checked_state(checkpoint.within("memory"), facts)
            check_labels(learner.memory, are_classes=_has_classes(learner))
            check_scores(learner.memory, learner.storage)
    except CheckpointError as error:
        reason = str(error).removesuffix("; nothing was loaded.").removesuffix(".")
        raise CheckpointError(
            f"the learner cannot be saved, because it could not go on from there ({reason}). "
            "What was saved before is as it was."
        ) from error


def _check_statistics(model: nn.Module) -> None:
    for path, layer in model.named_modules():
        if isinstance(layer, _BatchNorm):
            for name, statistic in layer.named_buffers(recurse=False):
                if not all_finite(statistic):
                    raise refuse(f"`{name}` of `{path}` holds NaN or infinite values")


def _has_classes(learner: "Learner") -> bool:
    needed = learner.storage is not None and learner.storage.needs_classes
    return learner.objective.needs_classes or needed


def restore_learner(
    learner: "Learner", checkpoint: Checkpoint, changed: Collection[str] = ()
) -> None:
    """Check that `checkpoint` fits, then, and only then, take it over.

    Args:
        learner: Which is to go on.
        checkpoint: Where it goes on from.
        changed: Of `CHANGEABLE`, what may differ.
    """
    saved = _checked(learner, checkpoint, changed)

    def take_over(learner: "Learner", transaction: Transaction) -> None:
        rehearse(learner, saved.take_over)
        saved.take_over(learner, transaction)

    take_over_whole(learner, take_over)


@dataclasses.dataclass(frozen=True)
class _Saved:
    """What a checkpoint holds, once it is known to fit a learner."""

    model: Mapping[str, Tensor]
    num_classes: int  # outputs of a head that had grown; 0 if it had not
    numbers: dict[Hashable, int] | None  # of the label map
    extra: Mapping[str, object]
    optimizer: dict[str, object] | None  # None: it is another one
    memory: Memory | None
    storage: Mapping[str, Tensor] | None  # likewise
    predictor: Mapping[str, Tensor]
    classes_seen: list[int]
    generators: Mapping[str, Tensor]
    step: int
    seen: int

    def take_over(self, learner: "Learner", transaction: Transaction) -> None:
        """Make a learner what was saved. It may be done twice: what is handed on is copied."""
        if self.num_classes:
            learner.widen(self.num_classes, transaction)
        if learner.label_map is not None and self.numbers is not None:
            transaction.on_failure(learner.label_map.way_back())
            learner.label_map.take(self.numbers)
        extra, optimizer, storage = copy.deepcopy((self.extra, self.optimizer, self.storage))
        for path, module in _with_extra_state(learner.model):
            module.set_extra_state(extra[path])
        with torch.no_grad():
            for name, tensor in _model_tensors(learner.model).items():
                tensor.copy_(self.model[name])
        if optimizer is not None:
            learner.optimizer.load_state_dict(optimizer)
        if self.memory is not None and learner.memory is not None:
            learner.memory.take_over(self.memory)
        if learner.storage is not None and storage is not None:
            learner.storage.restore(storage)
        learner.predictor.restore(self.predictor)
        transaction.on_failure(learner._classes_seen.way_back())
        learner._classes_seen.take(self.classes_seen)
        for name, generator in learner.generators.items():
            generator.set_state(self.generators[name])
        learner.step, learner.seen = self.step, self.seen


def _checked(learner: "Learner", checkpoint: Checkpoint, changed: Collection[str]) -> _Saved:
    """Check all that can be told without moving anything."""
    facts = checkpoint.facts
    check_parts(_parts(learner), facts.get("parts"), changed)
    model = checkpoint.within("model")
    num_classes, of_head = _saved_width(learner, model)
    check_model(_model_tensors(learner.model), model, wider=of_head)
    extra = _saved_extra_state(learner.model, checkpoint)
    optimizer = None
    if "optimizer" not in changed:
        optimizer = check_optimizer(
            learner.optimizer.state_dict(), unpack(facts.get("optimizer"), checkpoint.tensors)
        )
    generators = checkpoint.within("generator")
    check_generators([*learner.generators], generators)
    numbers = None
    if learner.label_map is not None:
        numbers = learner.label_map.numbers_in(facts.get("label map"))
    memory = _checked_memory(learner, checkpoint, changed)
    return _Saved(
        model,
        num_classes,
        numbers,
        extra,
        optimizer,
        memory,
        None if "storage" in changed else checkpoint.within("storage"),
        {} if "predictor" in changed else _checked_predictor(learner, checkpoint),
        _checked_classes(learner, facts.get("classes seen"), memory, changed),
        generators,
        checked_count(facts, "step"),
        checked_count(facts, "seen"),
    )


def _saved_width(learner: "Learner", saved: Mapping[str, Tensor]) -> tuple[int, set[str]]:
    """Return how wide the saved head is, if it is wider, and the names of its parameters."""
    head = learner.head
    if head is None:
        return 0, set()
    own = {id(parameter) for parameter in head.parameters()}
    names = {name for name, p in learner.model.named_parameters() if id(p) in own}
    rows = {len(saved[name]) for name in names if name in saved and saved[name].ndim}
    is_wider = len(rows) == 1 and max(rows) > head.out_features
    return (max(rows), names) if is_wider else (0, set())


def _checked_memory(
    learner: "Learner", checkpoint: Checkpoint, changed: Collection[str]
) -> Memory | None:
    if learner.memory is None or learner.storage is None:
        return None
    facts = cast("Mapping[str, object]", checkpoint.facts.get("memory"))
    # Before room is made for them.
    if "capacity" not in changed:
        check_size(learner.memory, facts)
    memory = Memory.from_state(
        checkpoint.within("memory"),
        facts,
        device=learner.memory.device,
        codec=learner.memory.codec,
    )
    check_labels(memory, are_classes=_has_classes(learner))
    if "storage" in changed:
        memory.score.zero_()  # another policy's
    check_scores(memory, learner.storage)
    if "capacity" in changed:
        drawing = torch.Generator()
        drawing.set_state(checkpoint.tensors["generator.storage"])
        return resized(memory, learner.memory.num_slots, drawing, learner.memory.max_bytes)
    return memory


def _checked_predictor(learner: "Learner", checkpoint: Checkpoint) -> dict[str, Tensor]:
    """Return what the predictor goes on from, on the model's device: averages move its weights."""
    saved = checkpoint.within("predictor")
    for name, tensor in saved.items():
        if not all_finite(tensor):
            raise refuse(f"`{name}` of the predictor holds NaN or infinite values")
    device = next(learner.model.parameters()).device
    return {name: tensor.to(device) for name, tensor in saved.items()}


def _checked_classes(
    learner: "Learner", saved: object, memory: Memory | None, changed: Collection[str]
) -> list[int]:
    """Return the classes seen; those in memory if the saved objective did not ask."""
    if not learner.objective.needs_classes_seen:
        return []
    if saved is None and "objective" in changed:
        return [] if memory is None else torch.unique(memory.labels).tolist()
    if not isinstance(saved, list) or not all(type(n) is int and 0 <= n <= MOST for n in saved):
        raise refuse("the classes seen are no whole numbers from 0")
    return saved


def parts_of(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return what a checkpoint says of its learner's parts."""
    parts = checkpoint.facts.get("parts")
    if not isinstance(parts, dict):
        raise refuse("it does not say of what parts its learner was")
    return parts


def memory_of(
    checkpoint: Checkpoint, device: torch.device | str, codec: Codec | None
) -> Memory | None:
    """Build an empty memory as the saved one was; None if there was none.

    The room that its slots take is not claimed here; what the file says is checked as it is loaded.
    """
    if checkpoint.facts.get("memory") is None:
        return None
    saved = checked_state(
        checkpoint.within("memory"), cast("Mapping[str, object]", checkpoint.facts["memory"])
    )
    return Memory(saved.slots, device=device, max_bytes=saved.max_bytes, codec=codec)


def _parts(learner: "Learner") -> dict[str, object]:
    parts: dict[str, object] = {
        "optimizer": type(learner.optimizer).__qualname__,
        "optimizer groups": [len(group["params"]) for group in learner.optimizer.param_groups],
        "capacity": None if learner.memory is None else learner.memory.num_slots,
        "storage": describe(learner.storage),
        "retrieval": describe(learner.retrieval),
        "rule": describe(learner.rule),
        "iterations": learner.iterations,
        "passes": learner.passes,
        "generators": {n: str(g.device.type) for n, g in learner.generators.items()},
    }
    if learner.objective.is_recorded:
        parts["objective"] = describe(learner.objective)
    if learner.predictor.is_recorded:
        parts["predictor"] = describe(learner.predictor)
    if learner.label_map is not None:
        parts["label map"] = True
    if learner.measured != "all":  # which checkpoints of before do not say
        parts["measured"] = learner.measured
    if any(isinstance(layer, _BatchNorm) for layer in learner.model.modules()):
        # Elsewhere it decides nothing, and must not part checkpoints from learners.
        parts["weighs"] = learner.weighs
    return parts


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
    found = {} if saved is None else unpack(saved, checkpoint.tensors)
    wanted = [path for path, _ in _with_extra_state(model)]
    if not isinstance(found, dict):
        raise refuse("its extra state has no names")
    if set(wanted) != found.keys():
        raise CheckpointError(
            "the checkpoint holds another model; nothing was loaded. It has the extra state of "
            f"{sorted(found)}, this model has extra state of {sorted(wanted)}."
        )
    return found
