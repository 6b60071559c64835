"""A fixed number of slots that hold examples as they arrived. Mechanics only, no policy."""

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, SupportsIndex

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from recollect import nested
from recollect.errors import CheckpointError
from recollect.memory.checks import checked_device, is_whole
from recollect.memory.columns import Codec, Column, PlainCodec, column_for, column_from_state
from recollect.memory.declared import Declared, with_capacity, with_column, write_rows
from recollect.memory.saved import SavedFacts, checked_state, of_column
from recollect.memory.slot import Id, Slot
from recollect.ragged import Ragged
from recollect.turns import Turns, in_turn

_MOST_SLOTS: Final = 1_000_000_000
# Per-slot columns. `arrived_at` counts stream examples from 1, `stored_at` updates of the model.
_COUNTS: Final = ("arrived_at", "stored_at", "times_replayed")
_MEASURES: Final = ("margin_increment", "score")


@lru_cache(maxsize=64)
def _ones(count: int) -> Int64[Tensor, " count"]:
    return torch.ones(count, dtype=torch.int64)


class Memory:
    """Hold at most `capacity` examples, each in the dtype and shape it came in.

    Examples of one shape are rows of a tensor whose bytes are taken once, with the first example.
    Examples of differing shapes, such as texts, are kept one by one, as are strings and other
    objects (as bytes). Which slot a newcomer takes is a storage policy's business, which slots are
    replayed a retrieval policy's; both read the columns here.

    Args:
        capacity: Number of slots, at least 1 (mem_sz in the paper).
        device: Where the examples live. It may differ from the model's device.
        max_bytes: Most bytes of examples, labels and columns; None sets no limit beside the slots.
            `capacity` falls to what fits: at once where examples have one shape, and step by step
            where they differ; then some drawn at random make way. It never rises again. An example
            that would not fit alone is not stored.
        codec: Turns objects that are no tensors into bytes and back. Strings, bytes and what JSON
            keeps need none.

    Example:
        >>> memory = Memory(capacity=2)
        >>> labels = torch.tensor([7, 7])
        >>> memory.write(torch.tensor([0, 1]), torch.zeros(2, 3), labels, arrived_at=1)
        >>> len(memory), memory.is_full, memory.counts_by_class()
        (2, True, {7: 2})
    """

    _counts: Int64[Tensor, "capacity counts"]
    _measures: Float[Tensor, "capacity measures"]
    arrived_at: Int64[Tensor, " capacity"]
    stored_at: Int64[Tensor, " capacity"]
    times_replayed: Int64[Tensor, " capacity"]
    margin_increment: Float[Tensor, " capacity"]
    score: Float[Tensor, " capacity"]

    def __init__(
        self,
        capacity: int,
        *,
        device: torch.device | str = "cpu",
        max_bytes: int | None = None,
        codec: Codec | None = None,
    ) -> None:
        if isinstance(capacity, bool) or not isinstance(capacity, SupportsIndex):
            raise TypeError(f"`capacity` is {capacity!r}; pass a whole number of slots.")
        if capacity < 1:
            raise ValueError(
                f"`capacity` is {capacity}; a memory needs at least 1 slot. "
                "To learn without a memory, use method 'van'."
            )
        if max_bytes is not None and (type(max_bytes) is not int or max_bytes < 1):
            raise ValueError(f"`max_bytes` is {max_bytes!r}; pass a number of bytes, or None.")
        self.capacity = operator.index(capacity)  # of a numpy integer, too
        if self.capacity > _MOST_SLOTS:
            raise ValueError(
                f"`capacity` is {capacity}; a memory has at most {_MOST_SLOTS:,} slots."
            )
        self.num_slots: Final = self.capacity  # as asked for, whatever the bytes allow
        self.max_bytes: Final = max_bytes
        self.device: Final = checked_device(device)
        self.turns = Turns()  # of threads that look while another learns
        self.codec: Final[Codec] = PlainCodec() if codec is None else codec
        self.enters_at_most = 1.0  # a reservoir's newcomers, while an enlarged memory fills up
        self.seen = 0  # stream examples so far, stored or not
        self.clock = 0  # updates of the model so far; ages are counted in it
        self._filled = 0
        self._own_ids: dict[int, Id] = {}  # by slot; others go by `arrived_at`
        self._declared: Declared = {}
        self._stored: list[Column] = []
        self._structure: object = None  # as `nested.skeleton` describes it
        self._labels = torch.empty(0, device=self.device)
        # Columns live on the CPU whatever the device: policies read them with Python in the loop.
        # Those of one dtype share a table, so that a slot is written with two operations, not five.
        self._lay_out(
            torch.zeros(self.capacity, len(_COUNTS), dtype=torch.int64),
            torch.zeros(self.capacity, len(_MEASURES)),
        )

    def _lay_out(self, counts: Tensor, measures: Tensor) -> None:
        # All at once: behind an interrupt between two of them, columns would be of another table.
        columns = {
            **dict(zip(_COUNTS, counts.unbind(1), strict=True)),
            **dict(zip(_MEASURES, measures.unbind(1), strict=True)),
        }
        vars(self).update(columns, _counts=counts, _measures=measures)

    def __getstate__(self) -> dict[str, object]:
        # Columns are views of the tables; a pickle would make tensors of their own of them.
        left_out = (*_COUNTS, *_MEASURES, "turns")
        return {name: kept for name, kept in vars(self).items() if name not in left_out}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self.turns = Turns()
        self._lay_out(self._counts, self._measures)

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
        tables = (self._labels, *self._tables())
        return sum(c.nbytes for c in self._stored) + sum(table.nbytes for table in tables)

    @property
    def takes_lists_apart(self) -> bool | None:
        """Whether a list of tensors was several inputs so far; None if nothing was stored yet."""
        if not self._stored:
            return None
        return isinstance(self._structure, dict) and "list" in self._structure

    # --- what policies and people look at -------------------------------------------------------

    @property
    def labels(self) -> Tensor:
        """The label in each filled slot."""
        return self._labels if self.is_full else self._labels[: self._filled]

    def ages(self, slots: Int64[Tensor, " slots"] | None = None) -> Int64[Tensor, " slots"]:
        """Updates since each example was stored, counting from 1 (a in EX = n / a; note P6)."""
        stored_at = self.stored_at[: len(self)] if slots is None else self.stored_at[slots]
        return torch.rsub(stored_at, self.clock + 1)

    @in_turn
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

    @in_turn
    def slot(self, index: int) -> Slot:
        """Everything about the example in slot `index`."""
        if not 0 <= index < len(self):
            raise self._empty_slot(index)
        inputs, label = self.read(torch.tensor([index]))
        return Slot(
            index=index,
            inputs=nested.map_columns(lambda column: next(iter(column)), inputs),
            label=label[0],
            age=int(self.ages(torch.tensor([index]))),
            times_replayed=int(self.times_replayed[index]),
            margin_increment=float(self.margin_increment[index]),
            score=float(self.score[index]),
            arrived_at=int(self.arrived_at[index]),
            id=self.id_of(index),
            columns={name: rows[index].clone() for name, (rows, _) in self._declared.items()},
        )

    def id_of(self, slot: int) -> Id:
        """Return the caller's name for the example in `slot`, else which of the stream it was."""
        return self._own_ids.get(slot, int(self.arrived_at[slot]))

    @property
    def is_named(self) -> bool:
        """Whether an example has a name of the caller's."""
        return bool(self._own_ids)

    @in_turn
    def ids(self) -> list[Id]:
        """Return the id of every stored example, by slot."""
        arrived: list[int] = self.arrived_at[: len(self)].tolist()
        return [self._own_ids.get(slot, number) for slot, number in enumerate(arrived)]

    @in_turn
    def find(self, id: Id) -> int | None:
        """Return the slot that holds the example named `id`; None if it is not stored."""
        return next((slot for slot, known in enumerate(self.ids()) if known == id), None)

    # --- mechanics --------------------------------------------------------------------------------

    @in_turn
    def read(self, slots: Int64[Tensor, " slots"]) -> tuple[object, Tensor]:
        """Return inputs and labels of `slots`, as stored, on the memory's device.

        Raises:
            IndexError: there is no example in one of them.
        """
        if not self.is_full:  # of a full one, torch itself refuses slots that are not there
            empty = [slot for slot in slots.tolist() if not 0 <= slot < len(self)]
            if empty or self.is_empty:
                raise self._empty_slot(*empty[:1])
        stored = [column.read(slots) for column in self._stored]
        is_one = self._structure is None
        inputs = stored[0] if is_one else nested.from_skeleton(self._structure, stored)
        return inputs, self._labels.index_select(0, slots.to(self.device))

    def write(
        self,
        slots: Int64[Tensor, " slots"],
        inputs: object,
        labels: Tensor,
        *,
        arrived_at: int | Tensor,
        ids: Sequence[Id] | None = None,
        declared: Mapping[str, Tensor] | None = None,
    ) -> None:
        """Put examples into distinct `slots`; a slot beyond the filled ones must be the next free.

        Args:
            slots: Where each example goes.
            inputs: The examples, first dimension as long as `slots`; they must pass `check_fits`.
            labels: One label per example.
            arrived_at: Which example of the stream each was, counting from 1.
            ids: The caller's names for them; None names each by its `arrived_at`.
            declared: Rows for declared columns; a column left out gets its default.
        """
        if slots.shape[0] == 0:
            return
        self.make_room(inputs, labels)
        self.loosen(inputs)
        for column, examples in zip(self._stored, nested.columns(inputs), strict=True):
            column.write(slots, examples)
        self._labels.index_copy_(0, slots.to(self.device), labels.to(self.device))
        arrivals = arrived_at.tolist() if isinstance(arrived_at, Tensor) else [arrived_at]
        arrivals *= slots.shape[0] // len(arrivals)  # one number may stand for all
        counts = torch.tensor([(arrival, self.clock, 0) for arrival in arrivals])
        self._counts.index_copy_(0, slots, counts)
        self._measures.index_fill_(0, slots, 0.0)
        for name, (rows, default) in self._declared.items():
            write_rows(rows, slots, default, (declared or {}).get(name))
        if self._own_ids or ids is not None:
            named = slots.tolist()
            for slot in named:
                self._own_ids.pop(slot, None)
            self._own_ids.update(zip(named, ids or (), strict=ids is not None))
        if not self.is_full:
            self._filled = max(self._filled, int(slots.max()) + 1)

    def make_room(self, inputs: object, labels: Tensor) -> bool:
        """Take the bytes for examples like these; False if they were taken before.

        Writing does this by itself; who must not fail there does it before.
        """
        if self._stored:
            return False
        try:
            self._allocate(inputs, labels)
        except BaseException:  # there may be bytes for the inputs and none for the labels
            self.give_back_room()
            raise
        return True

    def give_back_room(self) -> None:
        """Undo `make_room` in a memory that nothing was written to."""
        self._stored, self._structure, self._labels = [], None, torch.empty(0, device=self.device)
        if len(self.score) < self.num_slots:  # the last of what is laid out
            self._begin_with(self.num_slots)

    def check_fits(self, inputs: object, labels: Tensor, *, may_differ: bool = False) -> None:
        """Refuse examples of another structure or dtype than those already stored.

        Args:
            inputs: The examples.
            labels: One label per example.
            may_differ: Whether tensors of any dtype may have another shape than those stored;
                else only whole numbers may, such as the tokens of another text.
        """
        if not self._stored:
            return
        if nested.skeleton(inputs) != self._structure:
            raise ValueError(
                "`inputs` has another structure than the examples in memory; "
                "pass the same tensor, tuple or dict layout every time."
            )
        for column, examples in zip(self._stored, nested.columns(inputs), strict=True):
            column.check_kind(examples)
            if not may_differ and isinstance(examples, Tensor):
                column.check_shape(examples)
        kept = self._labels
        if labels.dtype != kept.dtype or labels.shape[1:] != kept.shape[1:]:
            raise TypeError(
                f"`labels` has dtype {labels.dtype} and shape {tuple(labels.shape[1:])} per "
                f"example, the memory holds {kept.dtype} and {tuple(kept.shape[1:])}; pass labels "
                "of one kind throughout."
            )

    def as_stored(self, labels: Tensor) -> Tensor:
        """Give whole numbers the dtype of those stored, if that can hold them."""
        kept = self._labels.dtype
        if not self._stored or labels.dtype == kept or not is_whole(labels.dtype, kept):
            return labels
        holds = torch.iinfo(kept)
        fit = holds.min <= int(labels.min()) and int(labels.max()) <= holds.max
        return labels.to(kept) if fit else labels

    def declare(self, name: str, like: Tensor, *, default: float) -> None:
        """Keep one more row per slot, such as a weight, if it is not kept already.

        Rows that are kept already, and hold fewer numbers than these, get as many.

        Args:
            name: By which `declared` and `write` know it.
            like: Rows of the shape and dtype to keep.
            default: What stands for examples that came without.

        Raises:
            ValueError: Rows of another kind are kept under this name.
        """
        before = self._declared
        self._declared = with_column(before, name, like, default, self.capacity)
        if self._declared is not before:
            self._check_one_fits()

    def declared(self, name: str, slots: Int64[Tensor, " slots"]) -> Tensor | None:
        """Return the rows of a declared column in `slots`; None if there is no such column."""
        return self._declared[name][0][slots] if name in self._declared else None

    @property
    def declared_names(self) -> tuple[str, ...]:
        """Names of the declared columns."""
        return tuple(self._declared)

    def note(self, name: str, slots: Int64[Tensor, " slots"], rows: Tensor) -> None:
        """Write rows of a declared column."""
        self._declared[name][0][slots] = rows.to(self._declared[name][0])

    def way_back_from_note(self, name: str, slots: Int64[Tensor, " slots"]) -> Callable[[], None]:
        """Remember rows of a declared column, and return what puts them back."""
        column = self._declared[name][0]
        before = column[slots]

        def put_back() -> None:
            column[slots] = before

        return put_back

    def take_columns_of(self, other: "Memory", slots: Int64[Tensor, " slots"]) -> None:
        """Take over all that `other` knows of the examples in `slots`, which are here in order."""
        here = slice(len(slots))
        self._counts[here], self._measures[here] = other._counts[slots], other._measures[slots]
        for name, (rows, default) in other._declared.items():
            self.declare(name, rows, default=default)
            self._declared[name][0][here] = rows[slots]

    def mark_replayed(self, slots: Int64[Tensor, " slots"], *, times: int = 1) -> None:
        """Count one more replay of each of `slots` (n in EX = n / a)."""
        self.times_replayed.index_add_(0, slots, _ones(slots.shape[0]), alpha=times)

    def way_back_from_replay(self, slots: Int64[Tensor, " slots"]) -> Callable[[], None]:
        """Remember how often `slots` were replayed, and return what puts that back."""
        counts = self.times_replayed.index_select(0, slots)

        def put_back() -> None:
            self.times_replayed.index_copy_(0, slots, counts)

        return put_back

    def way_back_of_counters(self) -> Callable[[], None]:
        """Remember the counters and whether there was room, and return what puts them back."""
        clock, seen, had_room = self.clock, self.seen, bool(self._stored)
        stored, declared = self._stored, self._declared

        def put_back() -> None:
            self.clock, self.seen, self._stored, self._declared = clock, seen, stored, declared
            if not had_room:
                self.give_back_room()

        return put_back

    @in_turn
    def drop(self, slots: Iterable[int]) -> dict[int, int]:
        """Overwrite and free some slots; examples from the end move into the holes.

        Returns:
            Where each example that moved is now, by the slot it was in.
        """
        action, moved = self.prepared_drop(slots)
        try:
            action()
        except BaseException:  # an interrupt: half of it must not stay
            action()
            raise
        return moved

    def prepared_drop(self, slots: Iterable[int]) -> tuple[Callable[[], None], dict[int, int]]:
        """Find out all that `drop` writes; the action does it, as often as it is run."""
        gone = sorted(set(slots))
        for slot in gone[:1] + gone[-1:]:
            if not 0 <= slot < len(self):
                raise self._empty_slot(slot)
        filled, left = len(self), len(self) - len(gone)
        movers = sorted(set(range(left, filled)) - set(gone))
        moved = dict(zip(movers, [slot for slot in gone if slot < left], strict=True))
        sources, targets = torch.tensor([*moved]).long(), torch.tensor([*moved.values()]).long()
        columns = [(column, column.read(sources)) for column in self._stored]
        tables = [
            (table, table[sources.to(table.device)]) for table in (self._labels, *self._tables())
        ]
        names = {
            moved.get(slot, slot): name
            for slot, name in self._own_ids.items()
            if slot not in set(gone)
        }

        def write() -> None:
            for column, examples in columns:
                column.erase(gone)
                if moved:
                    column.write(targets, examples)
                column.erase(list(range(left, filled)))
            for table, rows in tables:
                table[targets.to(table.device)] = rows
                table[left:filled] = 0
            self._own_ids = names
            self._filled = left

        return write, moved

    @in_turn
    def forget(
        self,
        *,
        slots: Iterable[int] = (),
        ids: Iterable[Id] = (),
        where: Callable[[Slot], bool] | None = None,
    ) -> list[Id]:
        """Overwrite and free examples that are named, or of which `where` is true.

        What the model has learnt from them stays in its weights. Examples from the end move into
        the freed slots. Ids that are not stored are passed over.

        Args:
            slots: By slot.
            ids: By id.
            where: By what is known of them.

        Returns:
            The ids of those that were forgotten.
        """
        wanted, named = set(slots), set(ids)
        known = self.ids()
        wanted |= {slot for slot, name in enumerate(known) if name in named}
        if where is not None:
            wanted |= {slot for slot in range(len(self)) if where(self.slot(slot))}
        self.drop(wanted)
        return [known[slot] for slot in sorted(wanted)]

    # --- bytes ------------------------------------------------------------------------------------

    def bytes_over(self) -> int:
        """Bytes held beyond `max_bytes`, 0 if there are none or no limit."""
        return 0 if self.max_bytes is None else max(0, self.nbytes - self.max_bytes)

    def bytes_by_slot(self) -> list[int]:
        """Bytes that dropping each stored example would free."""
        by_column = [column.sizes_held(len(self)) for column in self._stored]
        return [sum(sizes) for sizes in zip(*by_column, strict=True)]

    def bytes_of(self, inputs: object) -> list[int]:
        """Bytes that each of some examples would take."""
        pairs = zip(self._stored, nested.columns(inputs), strict=True)
        return [sum(sizes) for sizes in zip(*(c.sizes(e) for c, e in pairs), strict=True)]

    def _check_one_fits(self) -> None:
        if self.max_bytes is not None and self.bytes_per_slot > self.max_bytes:
            raise ValueError(
                f"`max_bytes` is {self.max_bytes}, but one example takes {self.bytes_per_slot}; "
                "allow more."
            )

    @property
    def bytes_per_slot(self) -> int:
        """Bytes of a slot whatever is in it: label, columns, and examples of one shape."""
        tables = (self._labels, *self._tables())
        return sum(t[:1].nbytes for t in tables) + sum(c.row_bytes for c in self._stored)

    def fall_to(self, capacity: int) -> None:
        """Have only the first slots from now on; the others hold nothing."""
        self.capacity = capacity
        self._stored = [column.cut(capacity) for column in self._stored]
        self._labels = self._labels[:capacity].clone()
        self._declared = with_capacity(self._declared, capacity, keep=True)
        self._lay_out(self._counts[:capacity].clone(), self._measures[:capacity].clone())

    def _begin_with(self, capacity: int) -> None:
        """Lay an empty memory out anew with another number of slots."""
        self.capacity = capacity
        counts, measures = self._counts, self._measures
        self._lay_out(
            counts.new_zeros(capacity, counts.shape[1]),
            measures.new_zeros(capacity, measures.shape[1]),
        )
        self._declared = with_capacity(self._declared, capacity, keep=False)

    def _empty_slot(self, index: int = 0) -> IndexError:
        filled = f"filled slots are 0 to {len(self) - 1}"
        filled = "the memory holds no example yet" if self.is_empty else filled
        return IndexError(f"slot {index} is empty; {filled}.")

    def _columns(self) -> dict[str, Tensor]:
        tables = ((_COUNTS, self._counts), (_MEASURES, self._measures))
        return {
            name: column for names, t in tables for name, column in zip(names, t.T, strict=True)
        }

    def loosen(self, inputs: object) -> None:
        """Keep examples one by one from now on, in columns whose shape these do not have."""
        pairs = zip(self._stored, nested.columns(inputs), strict=True)
        if all(column.takes(examples) for column, examples in pairs):
            return
        pairs = zip(self._stored, nested.columns(inputs), strict=True)
        self._stored = [c if c.takes(e) else c.loosened(self._filled) for c, e in pairs]

    def _allocate(self, inputs: object, labels: Tensor) -> None:
        examples = nested.columns(inputs)
        if self.max_bytes is not None:
            self._begin_with(self._capacity_within(self.max_bytes, examples, labels))
        stored = [column_for(e, self.capacity, self.device, self.codec) for e in examples]
        self._structure = nested.skeleton(inputs)
        self._stored, self._labels = stored, self._room_for(labels)

    def _room_for(self, labels: Tensor) -> Tensor:
        shape = (self.capacity, *labels.shape[1:])
        return torch.zeros(shape, dtype=labels.dtype, device=self.device)

    def _capacity_within(
        self, limit: int, examples: Sequence[Tensor | Ragged], labels: Tensor
    ) -> int:
        """How many slots fit into `limit` bytes, with one example at least."""
        of_tables = sum(table[:1].nbytes for table in self._tables())
        of_inputs = sum(e[:1].nbytes for e in examples if isinstance(e, Tensor))
        of_one = of_tables + labels[:1].nbytes + of_inputs
        if of_one > limit:
            raise ValueError(f"`max_bytes` is {limit}, but one example takes {of_one}; allow more.")
        return min(self.num_slots, limit // of_one)

    def _tables(self) -> tuple[Tensor, ...]:
        return self._counts, self._measures, *(rows for rows, _ in self._declared.values())

    # --- checkpoints ------------------------------------------------------------------------------

    @in_turn
    def state(self) -> tuple[dict[str, Tensor], dict[str, object]]:
        """Return all there is to save: tensors of the filled slots, and JSON-able facts."""
        facts: dict[str, object] = {
            "capacity": self.capacity,
            "filled": self._filled,
            "seen": self.seen,
            "clock": self.clock,
            "structure": self._structure,
            "num_leaves": len(self._stored),
        }
        if self.max_bytes is not None:
            facts |= {"max_bytes": self.max_bytes, "slots": self.num_slots}
        if self.enters_at_most < 1:
            facts["enters_at_most"] = self.enters_at_most
        if self._own_ids:
            facts["ids"] = [[slot, name] for slot, name in sorted(self._own_ids.items())]
        if self._declared:
            facts["declared"] = {name: default for name, (_, default) in self._declared.items()}
        if not self._stored:
            return {}, facts
        # Copies, because a single entry of a table's column keeps the stride of the table.
        tensors = {
            name: column[: len(self)].clone(memory_format=torch.contiguous_format)
            for name, column in self._columns().items()
        }
        tensors["labels"] = self.labels
        for name, (rows, _) in self._declared.items():
            tensors[f"declared.{name}"] = rows[: len(self)].clone()
        for index, column in enumerate(self._stored):
            saved = column.state(len(self))
            tensors |= {f"inputs.{index}{name}": tensor for name, tensor in saved.items()}
        return tensors, facts

    def take_over(self, other: "Memory") -> None:
        """Become what `other` is, of the same capacity; `other` must not be used afterwards."""
        vars(self).update({name: kept for name, kept in vars(other).items() if name != "turns"})

    @classmethod
    def from_state(
        cls,
        tensors: Mapping[str, Tensor],
        facts: Mapping[str, object],
        *,
        device: torch.device | str = "cpu",
        codec: Codec | None = None,
    ) -> "Memory":
        """Build the memory that `state` described.

        Raises:
            CheckpointError: It cannot have been a memory's state.
        """
        saved = checked_state(tensors, facts)
        try:
            return cls._from_checked(saved, tensors, device, codec)
        except (
            ArithmeticError,
            LookupError,
            MemoryError,
            RuntimeError,
            TypeError,
            ValueError,
        ) as e:
            raise CheckpointError(f"the memory is damaged: {e}.") from e

    @classmethod
    def _from_checked(
        cls,
        saved: SavedFacts,
        tensors: Mapping[str, Tensor],
        device: torch.device | str,
        codec: Codec | None,
    ) -> "Memory":
        memory = cls(saved.slots, device=device, max_bytes=saved.max_bytes, codec=codec)
        memory._begin_with(saved.capacity)
        if saved.num_leaves:
            memory._stored = [
                column_from_state(
                    of_column(index, tensors), memory.capacity, memory.device, memory.codec
                )
                for index in range(saved.num_leaves)
            ]
            memory._structure = saved.structure
            memory._labels = memory._room_for(tensors["labels"])
            memory._labels[: saved.filled] = tensors["labels"]
            for name, column in memory._columns().items():
                column[: saved.filled] = tensors[name]
            memory._filled = saved.filled
            memory._own_ids = saved.ids
            for name, default in saved.declared.items():
                rows = tensors[f"declared.{name}"]
                memory.declare(name, rows, default=default)
                memory._declared[name][0][: saved.filled] = rows
        memory.seen, memory.clock = saved.seen, saved.clock
        memory.enters_at_most = saved.enters_at_most
        return memory
