"""One stored example and what is known of it."""

from dataclasses import dataclass, field

from torch import Tensor

Id = int | str


@dataclass(frozen=True)
class Slot:
    """What a memory knows of the example in one slot.

    Attributes:
        index: The slot. Forgetting others may move the example to another.
        inputs: The example as it arrived.
        label: Its label.
        age: Updates since it was stored, from 1.
        times_replayed: How often it was replayed.
        margin_increment: As the storage policy last measured it.
        score: Likewise.
        arrived_at: Which example of the stream it was, from 1.
        id: The caller's name for it, else `arrived_at`.
        columns: What parts have declared to keep of it, by name.
    """

    index: int
    inputs: object
    label: Tensor
    age: int
    times_replayed: int
    margin_increment: float
    score: float
    arrived_at: int
    id: Id
    columns: dict[str, Tensor] = field(default_factory=dict)
