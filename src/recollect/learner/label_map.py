"""Names of classes as numbers."""

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from recollect.errors import CheckpointError

_KEPT = (str, int, float, bool, type(None))


@final
class LabelMap:
    """Number classes in the order in which the stream brings them, whatever they are called.

    A class is a string, a number, None, bytes, or a tuple of these. The map is part of a learner's
    checkpoint, and a step that fails leaves no new class in it.

    Args:
        labels: Classes known from the start, in order.

    Example:
        >>> classes = LabelMap(["cat"])
        >>> classes.encode(["dog", "cat"]).tolist(), classes.labels
        ([1, 0], ['cat', 'dog'])
        >>> classes.decode(torch.tensor([[0.2, 1.5]]))
        ['dog']
    """

    def __init__(self, labels: Iterable[Hashable] = ()) -> None:
        self._numbers: dict[Hashable, int] = {}
        self.add(labels)

    def __len__(self) -> int:
        return len(self._numbers)

    def __repr__(self) -> str:
        return f"LabelMap({self.labels!r})"

    @property
    def labels(self) -> list[Hashable]:
        """Every class, by number."""
        return list(self._numbers)

    def encode(self, labels: Iterable[object]) -> Int64[Tensor, " examples"]:
        """Return the number of each label; one that is new gets the next."""
        listed = plain_labels(labels)
        self.add(listed)
        return torch.tensor([self._numbers[label] for label in listed], dtype=torch.int64)

    def way_back(self) -> Callable[[], None]:
        """Return what makes the map know the classes it knows now, and no other."""
        return partial(self.take, self._numbers)

    def add(self, labels: Iterable[Hashable]) -> None:
        """Number the labels that are new."""
        known = dict(self._numbers)
        for label in labels:
            if label not in known:
                _check_kept(label)
                known[label] = len(known)
        self._numbers = known

    def decode(
        self, outputs: Float[Tensor, "examples classes"] | Int64[Tensor, " examples"]
    ) -> list[Hashable]:
        """Return the label of each number, or of the largest of each row of logits.

        Outputs for classes that the map does not know yet are passed over.
        """
        labels = self.labels
        if outputs.ndim == 2:
            if not labels:
                raise ValueError("the label map knows no class yet; observe a batch first.")
            outputs = outputs[:, : len(labels)].argmax(1)
        return [labels[number] for number in outputs.tolist()]

    def state(self) -> list[object]:
        """Return the labels in JSON's terms."""
        return [_described(label) for label in self._numbers]

    @staticmethod
    def numbers_in(state: object) -> dict[Hashable, int]:
        """Read what `state` returned.

        Raises:
            CheckpointError: It is damaged.
        """
        try:
            labels = [_rebuilt(entry) for entry in state]  # type: ignore[attr-defined]
            numbers = {label: number for number, label in enumerate(labels)}
        except (TypeError, ValueError, RecursionError):
            raise CheckpointError(f"the label map is damaged: {str(state)[:80]}.") from None
        if len(numbers) < len(labels):
            raise CheckpointError("the label map is damaged: a class is in it twice.")
        return numbers

    def take(self, numbers: dict[Hashable, int]) -> None:
        """Know these classes and no other."""
        self._numbers = numbers


def plain_labels(labels: Iterable[object]) -> list[Hashable]:
    """List labels as Python values: a tensor's or an array's are numbers like any other."""
    listed = labels.tolist() if isinstance(labels, Tensor) else list(labels)
    plain: list[Hashable] = [e.item() if isinstance(e, np.generic | Tensor) else e for e in listed]
    for label in plain:
        try:
            hash(label)
        except TypeError:
            raise TypeError(
                f"`labels` holds {label!r}, which cannot be looked up; pass one name per example."
            ) from None
    return plain


def _check_kept(label: Hashable) -> None:
    if isinstance(label, tuple):
        for part in label:
            _check_kept(part)
    elif not isinstance(label, (*_KEPT, bytes)) or label != label:
        raise TypeError(
            f"`labels` holds {label!r}, which a checkpoint cannot keep; name classes by strings, "
            "numbers, bytes, None or tuples of these."
        )


def _described(label: Hashable) -> object:
    if isinstance(label, tuple):
        return {"tuple": [_described(part) for part in label]}
    return {"bytes": label.hex()} if isinstance(label, bytes) else label


def _rebuilt(entry: object) -> Hashable:
    if isinstance(entry, dict):
        ((kind, content),) = entry.items()
        if kind == "tuple" and isinstance(content, list):
            return tuple(_rebuilt(part) for part in content)
        if kind == "bytes" and isinstance(content, str):
            return bytes.fromhex(content)
        raise ValueError(kind)
    if not isinstance(entry, _KEPT):
        raise TypeError(entry)
    return entry
