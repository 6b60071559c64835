"""What a file says of a memory, checked before a memory is built from it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

import torch
from torch import Tensor

from recollect.errors import CheckpointError
from recollect.memory.slot import Id

# More examples or updates than a stream can have; up to here a double knows whole numbers apart.
MOST: Final = 2**53
_LARGEST_INCREMENT: Final = 2.001  # margins lie between -1 and 1, but for rounding
_REAL: Final = (torch.float32, torch.float64)


@dataclass(frozen=True)
class SavedFacts:
    """The facts of a memory's state, once they are known to make sense."""

    slots: int
    capacity: int
    max_bytes: int | None
    filled: int
    seen: int
    clock: int
    num_leaves: int
    structure: object
    ids: dict[int, Id]
    declared: dict[str, float]
    enters_at_most: float


def checked_state(tensors: Mapping[str, Tensor], facts: Mapping[str, object]) -> SavedFacts:
    """Check all that `Memory.state` returned, as a file gives it back.

    Raises:
        CheckpointError: It cannot have been a memory's state.
    """
    if not isinstance(facts, Mapping):
        raise CheckpointError(f"the memory is damaged: it is a {type(facts).__name__}.")
    capacity = _count(facts, "capacity", at_least=1)
    slots = _count(facts, "slots", at_least=capacity) if "slots" in facts else capacity
    limit = _count(facts, "max_bytes", at_least=1) if "max_bytes" in facts else None
    if limit is None and slots != capacity:
        raise CheckpointError(
            f"the memory is damaged: `slots` is {slots} for {capacity} without `max_bytes`."
        )
    filled = _count(facts, "filled", at_most=capacity)
    clock = _count(facts, "clock")
    num_leaves = _count(facts, "num_leaves", at_most=len(tensors))
    _check_structure(facts.get("structure"), num_leaves)
    if num_leaves:
        _check_tables(tensors, filled, clock)
        for index in range(num_leaves):
            _check_column(of_column(index, tensors), filled)
    elif filled:
        raise CheckpointError(f"the memory is damaged: {filled} slots are filled with nothing.")
    return SavedFacts(
        slots,
        capacity,
        limit,
        filled,
        _count(facts, "seen"),
        clock,
        num_leaves,
        facts.get("structure"),
        _ids(facts.get("ids", []), filled),
        _declared(tensors, facts.get("declared", {}), filled),
        _share(facts.get("enters_at_most", 1.0)),
    )


def of_column(index: int, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Pick the tensors of one column of inputs, by the rest of their names."""
    name = f"inputs.{index}"
    return {
        key.removeprefix(name): tensor
        for key, tensor in tensors.items()
        if key == name or key.startswith(f"{name}.")
    }


def all_finite(tensor: Tensor) -> bool:
    """Whether no number is NaN or infinite; true of whole numbers."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return True
    # Of the floats of one byte torch cannot tell.
    return bool(torch.isfinite(tensor.float() if tensor.element_size() == 1 else tensor).all())


def _count(
    facts: Mapping[str, object], name: str, *, at_least: int = 0, at_most: int = MOST
) -> int:
    value = facts.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not at_least <= value <= at_most:
        raise CheckpointError(
            f"the memory's counters are damaged: `{name}` is {str(value)[:40]}, not a whole number "
            f"from {at_least} to {at_most}."
        )
    return value


def _check_tables(tensors: Mapping[str, Tensor], filled: int, clock: int) -> None:
    labels = tensors.get("labels")
    if labels is None or labels.ndim == 0 or len(labels) != filled or not all_finite(labels):
        raise CheckpointError(
            f"the memory is damaged: `labels` are not {filled} numbers, one for each filled slot."
        )
    # An age counts from 1, so nothing can have been stored after the last update.
    for name, largest in (("arrived_at", MOST), ("stored_at", clock), ("times_replayed", MOST)):
        column = _column(tensors, name, filled, (torch.int64,))
        if filled and not 0 <= int(column.min()) <= int(column.max()) <= largest:
            raise CheckpointError(
                f"the memory is damaged: `{name}` holds {int(column.min())} to "
                f"{int(column.max())}, beyond 0 to {largest}."
            )
    increment = _column(tensors, "margin_increment", filled, _REAL)
    if not bool((increment.abs() <= _LARGEST_INCREMENT).all()):
        raise CheckpointError(
            "the memory is damaged: `margin_increment` is no difference of margins somewhere."
        )
    if bool(_column(tensors, "score", filled, _REAL).isnan().any()):
        raise CheckpointError("the memory is damaged: `score` is not a number somewhere.")


def _column(
    tensors: Mapping[str, Tensor], name: str, filled: int, dtypes: tuple[torch.dtype, ...]
) -> Tensor:
    column = tensors.get(name)
    if column is None or column.shape != (filled,) or column.dtype not in dtypes:
        found = "missing" if column is None else f"{tuple(column.shape)} {column.dtype}"
        raise CheckpointError(
            f"the memory is damaged: `{name}` is {found}, not ({filled},) {dtypes[0]}."
        )
    return column


def _check_column(saved: Mapping[str, Tensor], filled: int) -> None:
    """Check one input; whether its numbers add up is for the column to say."""
    rows = next((saved[name] for name in ("", ".dims", ".lengths") if name in saved), None)
    if rows is None or rows.ndim == 0 or len(rows) != filled:
        raise CheckpointError(f"the memory's inputs are damaged: they are not {filled}, as stated.")
    for name, tensor in saved.items():
        expected = {".dims": torch.int64, ".shapes": torch.int64, ".lengths": torch.int64}
        expected[".bytes"] = torch.uint8
        if name and (tensor.ndim != 1 or tensor.dtype != expected.get(name, tensor.dtype)):
            raise CheckpointError(
                f"the memory's inputs are damaged: `{name}` is {tensor.dtype} of shape "
                f"{tuple(tensor.shape)}."
            )
        if not all_finite(tensor):
            raise CheckpointError("the memory's inputs are damaged: some are NaN or infinite.")


def _check_structure(structure: object, num_leaves: int) -> None:
    try:
        found = _num_leaves(structure)
    except (TypeError, ValueError, RecursionError):
        found = -1
    if found != num_leaves and not (structure is None and num_leaves == 0):
        raise CheckpointError(
            f"the memory is damaged: its inputs are laid out as {str(structure)[:80]}, and there "
            f"are {num_leaves} of them."
        )


def _num_leaves(node: object) -> int:
    if node is None:
        return 1
    if not isinstance(node, dict):
        raise TypeError(node)
    ((kind, entries),) = node.items()
    if kind not in ("dict", "tuple", "list") or not isinstance(entries, list):
        raise ValueError(kind)
    if kind != "dict":
        return sum(map(_num_leaves, entries))
    if len({key for key, _ in entries}) < len(entries):
        raise ValueError("a key is there twice")
    return sum(_num_leaves(entry) for _, entry in entries)


def _ids(saved: object, filled: int) -> dict[int, Id]:
    try:
        pairs = [(slot, name) for slot, name in cast("list[tuple[object, object]]", saved)]
    except (TypeError, ValueError):
        raise CheckpointError("the memory's ids are damaged.") from None
    known = {
        slot: name
        for slot, name in pairs
        if isinstance(slot, int) and 0 <= slot < filled and isinstance(name, int | str)
    }
    is_flagged = any(isinstance(part, bool) for pair in pairs for part in pair)
    if len(known) != len(pairs) or is_flagged:
        raise CheckpointError("the memory's ids are damaged.")
    return known


def _declared(tensors: Mapping[str, Tensor], saved: object, filled: int) -> dict[str, float]:
    """Check the columns that parts have declared: rows, and what stands for none."""
    if not isinstance(saved, dict):
        raise CheckpointError("the memory's declared columns are damaged.")
    for name, default in saved.items():
        rows = tensors.get(f"declared.{name}")
        if rows is None or rows.ndim == 0 or len(rows) != filled or not all_finite(rows):
            raise CheckpointError(f"the memory's column `{name}` is not {filled} finite rows.")
        if not isinstance(default, float) or not math.isfinite(default):
            raise CheckpointError(f"the memory's column `{name}` has default {default!r}.")
        if name == "weight" and filled and (rows.shape != (filled,) or float(rows.min()) < 0):
            raise CheckpointError("the memory's column `weight` holds negative weights.")
    return saved


def _share(saved: object) -> float:
    if not isinstance(saved, float) or not 0 < saved <= 1:
        raise CheckpointError(f"the memory is damaged: `enters_at_most` is {str(saved)[:40]}.")
    return saved
