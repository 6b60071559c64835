"""A fixed number of slots that hold examples as they arrived. Mechanics only, no policy."""

import operator
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, SupportsIndex

import torch
from jaxtyping import Int64
from torch import Tensor

from recollect import nested
from recollect.errors import CheckpointError

# Per-slot columns. `arrived_at` counts stream examples from 1, `stored_at` updates of the model.
_COUNTS: Final = ("arrived_at", "stored_at", "times_replayed")
_MEASURES: Final = ("margin_increment", "score")


@dataclass(frozen=True)
class Slot:
    """One stored example and what is known of it."""

    index: int
    inputs: object
    label: Tensor
    age: int
    times_replayed: int
    margin_increment: float
    score: float
    arrived_at: int


class Memory:
    """Hold at most `capacity` examples, each in the dtype it came in.

    The bytes are taken once, when the first example fixes shape and dtype, and never grow.
    Which slot a newcomer takes is a storage policy's business, which slots are replayed a retrieval
    policy's; both read the columns here.

    Args:
        capacity: Number of slots, at least 1 (mem_sz in the paper).
        device: Where the examples live. It may differ from the model's device.

    Example:
        >>> memory = Memory(capacity=2)
        >>> labels = torch.tensor([7, 7])
        >>> memory.write(torch.tensor([0, 1]), torch.zeros(2, 3), labels, arrived_at=1)
        >>> len(memory), memory.is_full, memory.counts_by_class()
        (2, True, {7: 2})
    """

    def __init__(self, capacity: int, *, device: torch.device | str = "cpu") -> None:
        if isinstance(capacity, bool) or not isinstance(capacity, SupportsIndex):
            raise TypeError(f"`capacity` is {capacity!r}; pass a whole number of slots.")
        if capacity < 1:
            raise ValueError(
                f"`capacity` is {capacity}; a memory needs at least 1 slot. "
                "To learn without a memory, use method 'van'."
            )
        self.capacity: Final = operator.index(capacity)  # of a numpy integer, too
        self.device: Final = torch.device(device)
        self.seen = 0  # stream examples so far, stored or not
        self.clock = 0  # updates of the model so far; ages are counted in it
        self._filled = 0
        self._stored: list[Tensor] = []
        self._structure: object = None  # inputs of no examples: structure, shapes and dtypes
        self._labels = torch.empty(0, device=self.device)
        # Columns live on the CPU whatever the device: policies read them with Python in the loop.
        # Those of one dtype share a table, so that a slot is written with two operations, not five.
        self._counts = torch.zeros(self.capacity, len(_COUNTS), dtype=torch.int64)
        self._measures = torch.zeros(self.capacity, len(_MEASURES))
        self.arrived_at, self.stored_at, self.times_replayed = self._counts.unbind(1)
        self.margin_increment, self.score = self._measures.unbind(1)

    def __len__(self) -> int:
        return self._filled

    def __repr__(self) -> str:
        return f"Memory(capacity={self.capacity}, filled={len(self)}, seen={self.seen})"

    @property
    def is_empty(self) -> bool:
        """Whether no slot holds an example."""
        return self._filled == 0

    @property
    def is_full(self) -> bool:
        """Whether every slot holds an example."""
        return self._filled == self.capacity

    @property
    def nbytes(self) -> int:
        """Bytes of everything held: examples, labels and columns."""
        held = [*self._stored, self._labels, self._counts, self._measures]
        return sum(tensor.nbytes for tensor in held)

    # --- what policies and people look at -------------------------------------------------------

    @property
    def labels(self) -> Tensor:
        """The label in each filled slot."""
        return self._labels if self.is_full else self._labels[: self._filled]

    def ages(self, slots: Int64[Tensor, " slots"] | None = None) -> Int64[Tensor, " slots"]:
        """Updates since each example was stored, counting from 1 (a in EX = n / a; note P6)."""
        stored_at = self.stored_at[: len(self)] if slots is None else self.stored_at[slots]
        return torch.rsub(stored_at, self.clock + 1)

    def counts_by_class(self) -> dict[int, int]:
        """How many slots each class holds, by class."""
        if self.labels.is_floating_point() and not self.is_empty:
            raise TypeError("`labels` are real numbers, not classes; there is nothing to count.")
        if self.labels.ndim != 1:
            shape = tuple(self.labels.shape[1:])
            raise TypeError(
                f"`labels` have shape {shape} each, not one class; count them yourself."
            )
        return dict(sorted(Counter(self.labels.tolist()).items()))

    def slot(self, index: int) -> Slot:
        """Everything about the example in slot `index`."""
        if not 0 <= index < len(self):
            raise self._empty_slot(index)
        inputs, label = self.read(torch.tensor([index]))
        return Slot(
            index=index,
            inputs=nested.map_leaves(lambda leaf: leaf[0], inputs),
            label=label[0],
            age=int(self.ages(torch.tensor([index]))),
            times_replayed=int(self.times_replayed[index]),
            margin_increment=float(self.margin_increment[index]),
            score=float(self.score[index]),
            arrived_at=int(self.arrived_at[index]),
        )

    # --- mechanics --------------------------------------------------------------------------------

    def read(self, slots: Int64[Tensor, " slots"]) -> tuple[object, Tensor]:
        """Return inputs and labels of `slots`, as stored, on the memory's device.

        Raises:
            IndexError: there is no example in one of them.
        """
        if not self.is_full:  # of a full one, torch itself refuses slots that are not there
            empty = [slot for slot in slots.tolist() if not 0 <= slot < len(self)]
            if empty or self.is_empty:
                raise self._empty_slot(*empty[:1])
        slots = slots.to(self.device)
        stored = [leaf.index_select(0, slots) for leaf in self._stored]
        inputs = stored[0] if isinstance(self._structure, Tensor) else self._rebuild(stored)
        return inputs, self._labels.index_select(0, slots)

    def write(
        self,
        slots: Int64[Tensor, " slots"],
        inputs: object,
        labels: Tensor,
        *,
        arrived_at: int | Tensor,
    ) -> None:
        """Put examples into distinct `slots`; a slot beyond the filled ones must be the next free.

        Args:
            slots: Where each example goes.
            inputs: The examples, first dimension as long as `slots`; they must pass `check_fits`.
            labels: One label per example.
            arrived_at: Which example of the stream each was, counting from 1.
        """
        if slots.shape[0] == 0:
            return
        self.make_room(inputs, labels)
        place = slots.to(self.device)
        for held, leaf in zip(self._stored, nested.leaves(inputs), strict=True):
            held.index_copy_(0, place, leaf.to(self.device))
        self._labels.index_copy_(0, place, labels.to(self.device))
        arrivals = arrived_at.tolist() if isinstance(arrived_at, Tensor) else [arrived_at]
        arrivals *= slots.shape[0] // len(arrivals)  # one number may stand for all
        counts = torch.tensor([(arrival, self.clock, 0) for arrival in arrivals])
        self._counts.index_copy_(0, slots, counts)
        self._measures.index_fill_(0, slots, 0.0)
        if not self.is_full:
            self._filled = max(self._filled, int(slots.max()) + 1)

    def make_room(self, inputs: object, labels: Tensor) -> bool:
        """Take the bytes for examples like these; False if they were taken before.

        Writing does this by itself; who must not fail there does it before.
        """
        if self._stored:
            return False
        self._allocate(inputs, labels)
        return True

    def give_back_room(self) -> None:
        """Undo `make_room` in a memory that nothing was written to."""
        self._stored, self._structure, self._labels = [], None, torch.empty(0, device=self.device)

    def check_fits(self, inputs: object, labels: Tensor) -> None:
        """Refuse examples of another structure, shape or dtype than those already stored."""
        if not self._stored:
            return
        one_tensor = isinstance(inputs, Tensor) and isinstance(self._structure, Tensor)
        if not one_tensor and nested.skeleton(inputs) != nested.skeleton(self._structure):
            raise ValueError(
                "`inputs` has another structure than the examples in memory; "
                "pass the same tensor, tuple or dict layout every time."
            )
        for held, leaf in zip(self._stored, nested.leaves(inputs), strict=True):
            if leaf.shape[1:] != held.shape[1:]:
                raise ValueError(
                    f"`inputs` has examples of shape {tuple(leaf.shape[1:])}, the memory holds "
                    f"{tuple(held.shape[1:])}; a memory keeps one shape. Pad or resize before "
                    "`observe`."
                )
            if leaf.dtype != held.dtype:
                raise TypeError(
                    f"`inputs` has dtype {leaf.dtype}, the memory holds {held.dtype}; convert "
                    "before `observe`, or start with an empty memory."
                )
        kept = self._labels
        if labels.dtype != kept.dtype or labels.shape[1:] != kept.shape[1:]:
            raise TypeError(
                f"`labels` has dtype {labels.dtype} and shape {tuple(labels.shape[1:])} an "
                f"example, the memory holds {kept.dtype} and {tuple(kept.shape[1:])}."
            )

    def mark_replayed(self, slots: Int64[Tensor, " slots"], *, times: int = 1) -> None:
        """Count one more replay of each of `slots` (n in EX = n / a)."""
        self.times_replayed.index_add_(0, slots, torch.ones_like(slots), alpha=times)

    def _empty_slot(self, index: int = 0) -> IndexError:
        filled = f"filled slots are 0 to {len(self) - 1}"
        filled = "the memory holds no example yet" if self.is_empty else filled
        return IndexError(f"slot {index} is empty; {filled}.")

    def _columns(self) -> dict[str, Tensor]:
        tables = ((_COUNTS, self._counts), (_MEASURES, self._measures))
        return {
            name: column for names, t in tables for name, column in zip(names, t.T, strict=True)
        }

    def _rebuild(self, stored: list[Tensor]) -> object:
        return nested.replace_leaves(self._structure, stored)

    def _allocate(self, inputs: object, labels: Tensor) -> None:
        def room(leaf: Tensor) -> Tensor:
            shape = (self.capacity, *leaf.shape[1:])
            return torch.empty(shape, dtype=leaf.dtype, device=self.device)

        stored, places = [room(leaf) for leaf in nested.leaves(inputs)], room(labels)
        self._structure = nested.map_leaves(lambda leaf: leaf[:0].clone(), inputs)
        self._stored, self._labels = stored, places

    # --- checkpoints ------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Tensor], dict[str, object]]:
        """Return all there is to save: tensors of the filled slots, and JSON-able facts."""
        facts: dict[str, object] = {
            "capacity": self.capacity,
            "filled": self._filled,
            "seen": self.seen,
            "clock": self.clock,
            "structure": nested.skeleton(self._structure) if self._stored else None,
            "num_leaves": len(self._stored),
        }
        if not self._stored:
            return {}, facts
        # Copies, because a single entry of a table's column keeps the stride of the table.
        tensors = {
            name: column[: len(self)].clone(memory_format=torch.contiguous_format)
            for name, column in self._columns().items()
        }
        tensors["labels"] = self.labels
        tensors |= {f"inputs.{i}": held[: len(self)] for i, held in enumerate(self._stored)}
        return tensors, facts

    def take_over(self, other: "Memory") -> None:
        """Become what `other` is, of the same capacity; `other` must not be used afterwards."""
        vars(self).update(vars(other))

    @classmethod
    def from_state(
        cls,
        tensors: Mapping[str, Tensor],
        facts: Mapping[str, object],
        *,
        device: torch.device | str = "cpu",
    ) -> "Memory":
        """Build the memory that `state` described."""
        names = ("capacity", "filled", "seen", "clock", "num_leaves")
        counts = {name: count for name in names if isinstance(count := facts.get(name), int)}
        if (
            len(counts) < len(names)
            or min(counts.values()) < 0
            or counts["filled"] > counts["capacity"]
        ):
            shown = {name: facts.get(name) for name in names}
            raise CheckpointError(f"the memory's counters are damaged: {shown}.")
        memory = cls(counts["capacity"], device=device)
        filled, num_leaves = counts["filled"], counts["num_leaves"]
        if num_leaves:
            stored = [tensors[f"inputs.{i}"] for i in range(num_leaves)]
            inputs = nested.from_skeleton(facts["structure"], stored)
            memory._allocate(inputs, tensors["labels"])
            for held, leaf in zip(memory._stored, stored, strict=True):
                held[:filled] = leaf
            memory._labels[:filled] = tensors["labels"]
            for name, column in memory._columns().items():
                column[:filled] = tensors[name]
            memory._filled = filled
        memory.seen, memory.clock = counts["seen"], counts["clock"]
        return memory
