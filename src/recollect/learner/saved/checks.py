"""What a checkpoint says of a learner, checked before anything of it is taken over."""

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final, cast

import torch
from torch import Tensor

from recollect.choices import LEARNER
from recollect.errors import CheckpointError
from recollect.memory import Memory
from recollect.memory.saved import MOST, all_finite
from recollect.network.runaway import LARGEST_WEIGHT
from recollect.storage import Storage

_DRAWN: Final = 2048  # words: more than a generator makes at a time
_LARGEST: Final = torch.finfo(torch.float32).max


def refuse(what: str) -> CheckpointError:
    """Return the error for a file that cannot have been a learner's state."""
    return CheckpointError(f"the checkpoint is damaged: {what}; nothing was loaded.")


#: What `Learner.load` may be told to go on without.
CHANGEABLE: Final = (
    *("capacity", "storage", "retrieval", "replay", "rule", "optimizer"),
    *LEARNER,
    *("objective", "predictor"),
)


def check_parts(mine: Mapping[str, object], saved: object, changed: Collection[str] = ()) -> None:
    """Refuse the checkpoint of a learner that is built otherwise, but for what is `changed`."""
    if unknown := sorted(set(changed) - set(CHANGEABLE)):
        raise ValueError(f"`changed` names {unknown}; choose from {', '.join(CHANGEABLE)}.")
    if not isinstance(saved, dict):
        raise refuse(f"its parts are a {type(saved).__name__}")
    differing = [
        f"{key}: the checkpoint has {saved.get(key)}, this learner has {mine.get(key)}"
        for key in [*mine, *(key for key in saved if key not in mine)]
        # As JSON, where 1, 1.0 and true are three.
        if key not in mine or json.dumps(saved.get(key)) != json.dumps(mine[key])
        if not _may_differ(key, mine.get(key), saved.get(key), changed)
    ]
    if differing:
        raise CheckpointError(
            "the checkpoint was made by another kind of learner; nothing was loaded. Build the "
            "learner as it was built when it was saved, or name what is to differ in `changed`. "
            + "; ".join(differing)
            + "."
        )


def _may_differ(key: str, mine: object, saved: object, changed: Collection[str]) -> bool:
    if key in changed or (key == "optimizer groups" and "optimizer" in changed):
        return True
    if key != "retrieval" or "replay" not in changed:
        return False
    here, there = (re.sub(r"\breplay=\d+", "replay", str(part)) for part in (mine, saved))
    return here == there


def check_model(
    mine: Mapping[str, Tensor], saved: Mapping[str, Tensor], *, wider: Collection[str] = ()
) -> None:
    """Refuse the tensors of another model, and weights that are none.

    Args:
        mine: The model's.
        saved: The checkpoint's.
        wider: Those that have more rows there, because the head has grown.
    """
    missing, extra = sorted(mine.keys() - saved.keys()), sorted(saved.keys() - mine.keys())
    reshaped = [
        f"{name}: {tuple(saved[name].shape)} {saved[name].dtype} saved, "
        f"{tuple(mine[name].shape)} {mine[name].dtype} here"
        for name in sorted(mine.keys() & saved.keys())
        if saved[name].shape[name in wider :] != mine[name].shape[name in wider :]
        or saved[name].dtype != mine[name].dtype
    ]
    if missing or extra or reshaped:
        raise CheckpointError(
            "the checkpoint holds another model; nothing was loaded. "
            f"Not in the checkpoint: {missing}; only there: {extra}; different: {reshaped}."
        )
    for name, tensor in saved.items():
        # A table of the model's own may hold infinities, as the mask of an attention does.
        if not all_finite(tensor) and (name in wider or not _same_gaps(tensor, mine[name])):
            raise refuse(f"`{name}` of the model holds NaN or infinite values")
        if mine[name].requires_grad and tensor.numel() and tensor.abs().max() > LARGEST_WEIGHT:
            raise refuse(f"`{name}` of the model holds weights beyond {LARGEST_WEIGHT:g}")


def check_optimizer(mine: Mapping[str, object], saved: object) -> dict[str, object]:
    """Refuse settings and state that cannot be this optimizer's."""
    if not isinstance(saved, dict) or saved.keys() != mine.keys():
        raise refuse("the optimizer's state has other entries than this optimizer's")
    my_groups = cast("list[dict[str, object]]", mine["param_groups"])
    _check_groups(my_groups, saved["param_groups"])
    known = {p for group in my_groups for p in cast("list[int]", group["params"])}
    state = saved["state"]
    if not isinstance(state, dict) or not state.keys() <= known:
        raise refuse("the optimizer's state is of other parameters")
    for number, entry in state.items():
        if not isinstance(entry, dict) or any(not isinstance(name, str) for name in entry):
            raise refuse(f"the optimizer's state of parameter {number} has no names")
        for name, value in entry.items():
            _check_numbers(f"`{name}` of parameter {number} in the optimizer", value)
    return cast("dict[str, object]", saved)


def _check_groups(mine: Sequence[Mapping[str, object]], saved: object) -> None:
    if not isinstance(saved, list) or len(saved) != len(mine):
        raise refuse("the optimizer's groups are not those of this optimizer")
    for number, (my_group, group) in enumerate(zip(mine, saved, strict=True)):
        where = f"group {number} of the optimizer"
        if not isinstance(group, dict) or group.get("params") != my_group["params"]:
            raise refuse(f"{where} is not one of these parameters")
        # More settings than here may be there: those of a scheduler that is not built yet.
        for name in (name for name in my_group if name not in group):
            raise refuse(f"{where} lacks `{name}`")
        for name, value in group.items():
            _check_setting(f"`{name}` of {where}", my_group.get(name, value), value)
        if _is_number(rate := group.get("lr")) and not math.isfinite(_as_float(rate)):
            raise refuse(f"`lr` of {where} is {rate}")


def checked_count(facts: Mapping[str, object], name: str) -> int:
    """Return a counter."""
    value = facts.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST:
        raise refuse(f"`{name}` is {str(value)[:40]}, not a whole number from 0 to {MOST}")
    return value


def check_generators(names: Sequence[str], saved: Mapping[str, Tensor]) -> None:
    """Refuse the states of other generators, and states from which nothing is drawn."""
    if set(names) != saved.keys():
        raise refuse(f"it has the generators {sorted(saved)}, not {sorted(names)}")
    for name, state in saved.items():
        generator = torch.Generator()
        try:
            generator.set_state(state)
            is_one = torch.equal(generator.get_state(), state)
        except (RuntimeError, TypeError):
            is_one = False
        drawn = torch.randint(2**31, (_DRAWN,), generator=generator)
        if not is_one or len(set(drawn.tolist())) < _DRAWN // 2:
            raise refuse(f"the state of the generator `{name}` is none")


def check_size(mine: Memory, facts: object) -> None:
    """Refuse the memory of another size, before room is made for it."""
    if not isinstance(facts, dict):
        raise refuse("it holds no memory")
    slots = facts.get("slots", facts.get("capacity"))
    if isinstance(slots, bool) or slots != mine.num_slots:
        raise refuse(f"its memory has {str(slots)[:40]} slots, this learner's has {mine.num_slots}")
    limit = facts.get("max_bytes")
    if limit is not None and not isinstance(limit, int):
        raise refuse(f"the `max_bytes` of its memory are {str(limit)[:40]}")
    if limit != mine.max_bytes:
        raise CheckpointError(
            f"the checkpoint's memory has `max_bytes` {limit}, this learner's has "
            f"{mine.max_bytes}; nothing was loaded. Build the memory as it was built when it was "
            "saved, or go on with this limit by "
            '`changed=("capacity",)`.'
        )


def check_scores(memory: Memory, storage: Storage) -> None:
    """Refuse scores that the storage policy cannot have noted."""
    lowest, highest = storage.score_range
    scores = memory.score[: len(memory)]
    if not bool(((scores >= lowest) & (scores <= highest)).all()):
        raise refuse(f"the memory holds scores beyond {lowest} to {highest}")


def check_labels(memory: Memory, *, are_classes: bool) -> None:
    """Refuse labels that count no class, where classes are learnt."""
    labels = memory.labels
    if not are_classes or memory.is_empty:
        return
    is_whole = not labels.is_floating_point() and not labels.is_complex()
    if not is_whole or labels.dtype == torch.bool or labels.ndim != 1 or int(labels.min()) < 0:
        raise refuse("the memory holds labels that are no classes, counted from 0")


def _check_setting(what: str, mine: object, saved: object) -> None:
    """Let a number change, as a schedule does, within what an optimizer takes; nothing else."""
    if isinstance(mine, tuple | list) and isinstance(saved, tuple | list):
        if len(mine) != len(saved):
            raise refuse(f"{what} has {len(saved)} entries, here it has {len(mine)}")
        for my_entry, entry in zip(mine, saved, strict=True):
            _check_setting(what, my_entry, entry)
    elif _is_number(mine) and _is_number(saved):
        here, there = _as_float(mine), _as_float(saved)
        if here != there and not (abs(there) <= _LARGEST and (there >= 0 or here < 0)):
            raise refuse(f"{what} is {there}, here it is {here}")
    elif isinstance(mine, Mapping | Tensor) or isinstance(saved, Tensor):
        _check_numbers(what, saved)
    elif mine is not saved and (type(mine), mine) != (type(saved), saved):
        raise refuse(f"{what} is {str(saved)[:40]}, here it is {mine}")


def _check_numbers(what: str, value: object) -> None:
    """Refuse NaN and infinity in whatever an optimizer remembers."""
    if isinstance(value, Tensor):
        is_sound = all_finite(value)
    elif isinstance(value, Mapping):
        for entry in value.values():
            _check_numbers(what, entry)
        return
    elif isinstance(value, list | tuple):
        for entry in value:
            _check_numbers(what, entry)
        return
    else:
        is_sound = not isinstance(value, float) or math.isfinite(value)
    if not is_sound:
        raise refuse(f"{what} holds NaN or infinite values")


def _is_number(value: object) -> bool:
    if isinstance(value, Tensor):
        return value.numel() == 1
    return isinstance(value, int | float) and not isinstance(value, bool)


def _as_float(value: object) -> float:
    try:
        return float(cast("float", value))
    except (OverflowError, TypeError):  # a whole number beyond any float; a complex one
        return math.nan


def _same_gaps(saved: Tensor, mine: Tensor) -> bool:
    same = (saved == mine.to(saved.device)) | torch.isfinite(saved)
    return not mine.requires_grad and bool(same.all())
