"""Refuse answers of policies that cannot be, before anything changes."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from recollect.errors import NonFiniteError
from recollect.memory import Memory
from recollect.network.batch import WEIGHT
from recollect.objectives import Objective, Part
from recollect.predictors import Predictor
from recollect.retrieval import Retrieval
from recollect.rules import Rule
from recollect.storage import Storage


def checked_slots(
    slots: object, memory: Memory, retrieval: Retrieval
) -> Int64[Tensor, " replayed"]:
    """Refuse a retrieval policy's answer that is not a few distinct filled slots."""
    who = f"retrieval {type(retrieval).__name__}"
    if not isinstance(slots, Tensor) or slots.dtype != torch.int64 or slots.ndim != 1:
        raise TypeError(f"{who} returned {slots!r}; return a vector of slots (torch.int64).")
    named: list[int] = slots.tolist()
    if (
        len(named) > retrieval.replay
        or len(set(named)) < len(named)
        or any(not 0 <= slot < len(memory) for slot in named)
    ):
        raise ValueError(
            f"{who} returned slots {named}; return at most {retrieval.replay} distinct slots from "
            f"0 to {len(memory) - 1}."
        )
    return slots.cpu()


def checked_admitted(admitted: object, count: int, storage: Storage) -> Int64[Tensor, " admitted"]:
    """Refuse a storage policy's admission that does not name newcomers in order."""
    who = f"storage {type(storage).__name__}"
    if not isinstance(admitted, Tensor) or admitted.dtype != torch.int64 or admitted.ndim != 1:
        raise TypeError(f"{who} admitted {admitted!r}; return a vector of indices (torch.int64).")
    named: list[int] = admitted.tolist()
    ascending = all(a < b for a, b in pairwise(named))
    if named and not (ascending and named[0] >= 0 and named[-1] < count):
        raise ValueError(
            f"{who} admitted {named}; return ascending, distinct indices from 0 to {count - 1}."
        )
    return admitted


_NO_PRODUCT: Final = (
    "an inner product of gradients is NaN or infinite though the losses are not; look for "
    "a division, logarithm or root of zero. Nothing was learnt or stored."
)


def check_gram(gram: Float[Tensor, "gradients gradients"]) -> Float[Tensor, "gradients gradients"]:
    """Refuse inner products that are NaN or infinite."""
    if not math.isfinite(gram.sum().item()):
        raise NonFiniteError(_NO_PRODUCT)
    return gram


def checked_row(row: Float[Tensor, "two gradients"]) -> tuple[list[float], list[float]]:
    """Return <g, g_k> and |g_k|^2 as numbers; refuse those that are NaN or infinite."""
    products, squared_lengths = row.tolist()
    if not math.isfinite(sum(products) + sum(squared_lengths)):
        raise NonFiniteError(_NO_PRODUCT)
    return products, squared_lengths


def checked_row_weights(weights: object, count: int, rule: Rule) -> list[float]:
    """Refuse an answer to a row that is not one finite number per gradient."""
    who = type(rule).__name__
    if not isinstance(weights, Sequence) or len(weights) != count:
        what = len(weights) if isinstance(weights, Sequence) else type(weights).__name__
        raise ValueError(
            f"`row_weights` of {who} returned {what} for {count} gradients; return a list of one "
            "weight per gradient."
        )
    if not math.isfinite(sum(weights)):
        raise NonFiniteError(f"{who} returned NaN or infinite weights.")
    return list(weights)


def checked_weights(weights: object, gram: Tensor, rule: Rule) -> Float[Tensor, " gradients"]:
    """Refuse a rule's answer that is not one finite weight per gradient."""
    if not isinstance(weights, Tensor) or weights.shape != gram.shape[:1]:
        shape = tuple(weights.shape) if isinstance(weights, Tensor) else type(weights).__name__
        raise ValueError(
            f"{type(rule).__name__} returned {shape} for {len(gram)} gradients; return one weight "
            "per gradient."
        )
    if not math.isfinite(weights.sum().item()):
        raise NonFiniteError(f"{type(rule).__name__} returned NaN or infinite weights.")
    return weights.to(gram)


def fixed_weights(rule: Rule, replayed: int) -> tuple[float, ...] | None:
    """Return the weights of a rule that needs nothing; None if gradients must be measured."""
    if rule.needs != "nothing" or not replayed:
        return None
    weights = rule.fixed_weights(replayed)
    if len(weights) != 1 + replayed:
        raise ValueError(
            f"{type(rule).__name__} returned {len(weights)} fixed weights for {1 + replayed} "
            "gradients; return one weight per gradient."
        )
    if not math.isfinite(sum(weights)):
        raise NonFiniteError(f"{type(rule).__name__} returned NaN or infinite weights.")
    return weights


def check_fit(
    objective: Objective,
    predictor: Predictor,
    storage: Storage | None,
    retrieval: Retrieval | None,
    *,
    passes: str,
    augments: bool,
) -> None:
    """Refuse an objective or a predictor that the rest of the learner cannot serve."""
    for name, part, kind in (
        ("objective", objective, Objective),
        ("predictor", predictor, Predictor),
    ):
        if not isinstance(part, kind):
            raise TypeError(
                f"`{name}` is {part!r}; pass an instance of a subclass of `{kind.__name__}`."
            )
    who = type(objective).__name__
    if objective.couples and storage is not None and passes != "joint":
        raise ValueError(
            f"`passes` is {passes!r}, but {who} compares incoming with replayed examples, which "
            "must pass together; use passes 'joint'."
        )
    if objective.views > 1 and not augments:
        raise ValueError(
            f"{who} compares {objective.views} views of each example, which would be the same "
            "without `augment`; pass one, such as `recollect.augment.RandomCrop()`."
        )
    if predictor.needs_memory and storage is None:
        raise ValueError(
            f"{type(predictor).__name__} predicts from stored examples, but `memory` is None; add "
            "a memory."
        )
    names = [column.name for column in objective.columns]
    names += [] if retrieval is None else [column.name for column in retrieval.columns]
    if len({*names, WEIGHT}) <= len(names):
        raise ValueError(
            f"the parts declare the memory columns {', '.join(names)}; give each a name of its "
            f"own, other than {WEIGHT!r}."
        )


def kept_rows(objective: Objective, outputs: object, labels: Tensor) -> Mapping[str, Tensor]:
    """Ask an objective what it keeps of newcomers, and refuse what is not a row for each."""
    who, names = type(objective).__name__, {column.name for column in objective.columns}
    if outputs is None:
        raise TypeError(
            f"{who} keeps {', '.join(sorted(names))} of each example, but the model's outputs are "
            "not tensors with one row per example; return such tensors."
        )
    rows = objective.rows_to_keep(Part(outputs, labels))
    if rows.keys() != names:
        raise ValueError(f"{who} declares {sorted(names)} and keeps {sorted(rows)}; keep all.")
    for name, kept in rows.items():
        if not isinstance(kept, Tensor) or kept.shape[:1] != labels.shape[:1] or kept.ndim > 2:
            raise ValueError(
                f"{who} keeps `{name}` of shape {tuple(kept.shape)} for {len(labels)} examples; "
                "return a number or a vector for each."
            )
        if not bool(torch.isfinite(kept).all()):
            raise NonFiniteError(f"{who} keeps NaN or infinite values in `{name}`.")
    return {name: kept.detach() for name, kept in rows.items()}
