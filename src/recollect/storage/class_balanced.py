"""Class-balancing reservoir sampling."""

from collections import Counter
from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import ClassVar, Final, final

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from recollect.memory import Memory
from recollect.storage.storage import Evidence, Placement, Storage

_FEW_CLASSES: Final = 1 << 16  # numbers in a table that is filled in every step


@final
class ClassBalanced(Storage):
    """Keep classes as equal in number as the stream allows, and uniform within each (CBRS).

    In a full memory, a newcomer of a class that has never been the largest replaces a random
    example of the largest class. One of a class that is, or once was, the largest enters with
    probability (stored of its class) / (seen of its class) and replaces a random example of its own
    class. Which class was the largest while the memory was filling up does not count.

    References:
        Chrysakis and Moens, Online continual learning from imbalanced data, ICML 2020, Algorithm 1.
    """

    needs_classes: ClassVar[bool] = True
    needs_evidence: ClassVar[bool] = False
    has_scores: ClassVar[bool] = False
    draws: ClassVar[bool] = False

    def __init__(self) -> None:
        self._seen: Counter[int] = Counter()
        self._full: set[int] = set()  # classes that are or were the largest

    def __repr__(self) -> str:
        return "ClassBalanced()"

    @override
    def place(
        self, labels: Tensor, memory: Memory, evidence: Evidence, rng: torch.Generator
    ) -> Placement:
        held = torch.full((memory.capacity,), -1)
        held[: len(memory)] = memory.labels.cpu()
        counts = _counts(memory, held)
        slots = torch.full((len(labels),), -1)
        filled = len(memory)
        for newcomer, label in enumerate(labels.tolist()):
            self._seen[label] += 1
            if filled < memory.capacity:
                slot, filled = filled, filled + 1
            else:
                slot = self._victim(label, held, counts, rng)
            if slot >= 0:
                counts[int(held[slot])] -= 1
                counts[label] += 1
                held[slot] = label
                slots[newcomer] = slot
        return Placement(slots)

    def _victim(self, label: int, held: Tensor, counts: Counter[int], rng: torch.Generator) -> int:
        most = max(counts.values())
        largest = [cls for cls, count in counts.items() if count == most]
        self._full.update(largest)
        if label not in self._full:
            return _one_of(largest, held, rng)
        drawn = float(torch.rand(1, generator=rng, dtype=torch.float64))
        enters = drawn * self._seen[label] < counts[label]
        return _one_of([label], held, rng) if enters else -1

    @override
    def state(self) -> dict[str, Tensor]:
        classes = sorted(self._seen)
        return {
            "classes": torch.tensor(classes, dtype=torch.int64),
            "seen": torch.tensor([self._seen[cls] for cls in classes], dtype=torch.int64),
            "full": torch.tensor(sorted(self._full), dtype=torch.int64),
        }

    @override
    def restore(self, state: Mapping[str, Tensor]) -> None:
        names = ("classes", "seen", "full")
        if state.keys() != set(names) or any(
            state[name].ndim != 1 or state[name].dtype != torch.int64 for name in names
        ):
            raise ValueError(f"`state` is not the whole numbers of {', '.join(names)}.")
        classes, seen, full = (state[name].tolist() for name in names)
        counts = Counter(dict(zip(classes, seen, strict=True)))
        if len(counts) < len(classes) or min([0, *classes]) < 0 or min([1, *seen]) < 1:
            raise ValueError("`state` does not count each class once, from 1 example.")
        self._seen, self._full = counts, set(full)


def _counts(memory: Memory, held: Tensor) -> Counter[int]:
    """How many slots each class holds: filling a table is much faster than looking them all up."""
    filled = held[: len(memory)]
    if memory.is_empty or memory.labels.is_floating_point() or int(filled.max()) >= _FEW_CLASSES:
        return Counter(memory.counts_by_class())
    table: list[int] = torch.bincount(filled).tolist()
    return Counter({cls: count for cls, count in enumerate(table) if count})


def _one_of(classes: list[int], held: Tensor, rng: torch.Generator) -> int:
    # numpy finds what is true in a large memory seven times as fast as torch.
    slots = np.flatnonzero(reduce(or_, [held.numpy() == cls for cls in classes]))
    return int(slots[int(torch.randint(len(slots), (), generator=rng))])
