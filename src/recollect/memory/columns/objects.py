"""Python objects, as bytes."""

from itertools import accumulate, pairwise
from typing import final

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor
from typing_extensions import override

from recollect.errors import CheckpointError
from recollect.memory.columns.codec import Codec
from recollect.memory.columns.column import Column, Examples
from recollect.ragged import Ragged


@final
class ObjectColumn(Column):
    """The bytes of one object per slot."""

    def __init__(self, capacity: int, codec: Codec) -> None:
        self._codec = codec
        self._rows = [bytearray()] * capacity
        self._sizes = torch.zeros(capacity, dtype=torch.int64)

    @property
    @override
    def nbytes(self) -> int:
        return int(self._sizes.sum())

    @override
    def check_kind(self, examples: Examples) -> None:
        if isinstance(examples, Tensor) or examples.tensors():
            raise TypeError("`inputs` holds tensors, the memory other objects; pass one kind.")
        for example in examples:
            self._codec.encode(example)

    @override
    def takes(self, examples: Examples) -> bool:
        return True

    @override
    def loosened(self, filled: int) -> Column:
        return self

    @override
    def sizes(self, examples: Examples) -> list[int]:
        return [len(self._codec.encode(example)) for example in examples]

    @override
    def sizes_held(self, filled: int) -> list[int]:
        return self._sizes[:filled].tolist()

    @override
    def read(self, slots: Int64[Tensor, " slots"]) -> Ragged:
        return Ragged([self._codec.decode(bytes(self._rows[slot])) for slot in slots.tolist()])

    @override
    def write(self, slots: Int64[Tensor, " slots"], examples: Examples) -> None:
        for slot, example in zip(slots.tolist(), examples, strict=True):
            self._put(slot, bytearray(self._codec.encode(example)))

    def _put(self, slot: int, stored: bytearray) -> None:
        self._rows[slot] = stored
        self._sizes[slot] = len(stored)

    @override
    def erase(self, slots: list[int]) -> None:
        for slot in slots:
            self._rows[slot][:] = bytes(len(self._rows[slot]))
            self._put(slot, bytearray())

    @override
    def state(self, filled: int) -> dict[str, Tensor]:
        rows = self._rows[:filled]
        return {
            ".bytes": torch.from_numpy(np.frombuffer(b"".join(rows), dtype=np.uint8).copy()),
            ".lengths": torch.tensor([len(row) for row in rows], dtype=torch.int64),
        }

    @classmethod
    def from_state(
        cls, stored: Tensor, lengths: Tensor, capacity: int, codec: Codec
    ) -> "ObjectColumn":
        """Build the column that `state` described.

        Raises:
            CheckpointError: The numbers do not fit together.
        """
        each: list[int] = lengths.tolist()
        if min([0, *each]) < 0 or sum(each) != stored.numel():
            raise CheckpointError("the memory's inputs are damaged: their lengths do not add up.")
        column = cls(capacity, codec)
        everything = stored.numpy().tobytes()
        for slot, (start, stop) in enumerate(pairwise(accumulate(each, initial=0))):
            column._put(slot, bytearray(everything[start:stop]))
            try:
                codec.decode(everything[start:stop])
            except Exception as error:  # of a codec of the user's, which may raise anything
                raise CheckpointError(
                    f"the memory's inputs are damaged: example {slot} cannot be decoded ({error})."
                ) from error
        return column
