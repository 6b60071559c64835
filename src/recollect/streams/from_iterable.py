"""Any iterable of batches as a single-pass stream."""

import hashlib
from collections.abc import Iterable, Mapping, Sized
from typing import Any, final

import torch
from numpy.typing import ArrayLike

from recollect.errors import StreamError
from recollect.streams.stream import Batch

_Source = Iterable[tuple[ArrayLike | torch.Tensor, ArrayLike | torch.Tensor]]


def from_iterable(batches: _Source) -> "IterableStream":
    """Make a stream of any iterable of `(inputs, labels)` batches, finite or not.

    Args:
        batches: Tensors or arrays, first dimension examples; batches may differ in size. Labels
            become int64. The iterable is read once, never ahead.

    Returns:
        A stream. `len()` works if `batches` has a length. `restore` reads a stream that has given
        nothing yet forward to the cursor, and checks that the labels on the way are the same.

    Example:
        >>> stream = from_iterable([([[0.5]], [1]), ([[0.25]], [0])])
        >>> [labels.tolist() for inputs, labels in stream]
        [[1], [0]]
    """
    return IterableStream(batches)


@final
class IterableStream:
    """A single pass over an iterable of batches; see `from_iterable`."""

    def __init__(self, batches: _Source) -> None:
        self._batches = iter(batches)
        self._num_batches = len(batches) if isinstance(batches, Sized) else None
        self._cursor = 0
        self._batches_given = 0
        self._labels_given = hashlib.sha256()
        self._is_spent = False

    @property
    def cursor(self) -> int:
        """Examples already given."""
        return self._cursor

    @property
    def batches_given(self) -> int:
        """Batches already given."""
        return self._batches_given

    def __len__(self) -> int:
        """Count all batches of the pass, given or not."""
        if self._num_batches is None:
            raise TypeError(
                "`batches` has no length, so neither has its stream; pass a sequence of batches to "
                "know it beforehand."
            )
        return self._num_batches

    def __bool__(self) -> bool:
        """Be true, as an object without a length is: `if stream` must not ask for one."""
        return True

    def __iter__(self) -> "IterableStream":
        """Go on from the cursor.

        Raises:
            StreamError: The iterable has ended.
        """
        if self._is_spent:
            raise StreamError(
                f"This stream has given all its {self._cursor} examples; online learning sees each "
                "once. For another run build the stream again from a new iterable."
            )
        return self

    def __next__(self) -> Batch:
        """Give the next batch and move the cursor."""
        try:
            given_inputs, given_labels = next(self._batches)
        except StopIteration:
            self._is_spent = True
            raise
        inputs = torch.as_tensor(given_inputs)
        labels = torch.as_tensor(given_labels)
        if labels.shape != inputs.shape[:1]:
            raise StreamError(
                f"Batch {self._batches_given} has labels of shape {tuple(labels.shape)} for inputs "
                f"of shape {tuple(inputs.shape)}; give one label per example."
            )
        if labels.is_floating_point():
            raise StreamError(
                f"Batch {self._batches_given} has labels of {labels.dtype}; give whole numbers."
            )
        labels = labels.to(torch.int64)
        self._cursor += len(labels)
        self._batches_given += 1
        self._labels_given.update(labels.cpu().contiguous().numpy().tobytes())
        return inputs, labels

    def state(self) -> dict[str, Any]:
        """Return where the stream is, ready for JSON."""
        return {
            "cursor": self._cursor,
            "batches_given": self._batches_given,
            "fingerprint": self._labels_given.hexdigest(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Read forward to where `state` was taken.

        Raises:
            StreamError: This stream has given batches already, or gives other ones than the stream
                that the state is of.
        """
        if self._batches_given:
            raise StreamError(
                f"This stream has given {self._batches_given} batches already and cannot go back; "
                "restore into a stream built again from a new iterable."
            )
        for _ in range(state["batches_given"]):
            if next(self, None) is None:
                break
        if self.state() != dict(state):
            raise StreamError(
                f"`state` is at example {state['cursor']} with fingerprint "
                f"{state['fingerprint'][:12]}, but this iterable is at {self._cursor} with "
                f"{self._labels_given.hexdigest()[:12]} after as many batches: it is the cursor of "
                "another stream. Build the stream again from the same batches in the same order."
            )
