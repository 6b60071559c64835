"""Check that a stream of your own behaves as every stream of this library does."""

import json
from collections.abc import Callable
from itertools import islice

import torch
from torch import Tensor

from recollect.errors import StreamError
from recollect.streams import Batch, SinglePass


def check_stream(build: Callable[[], SinglePass], *, max_batches: int = 1000) -> None:
    """Check single pass, exact length, reproducibility, cursor and labels of a stream.

    Args:
        build: Builds the stream from the beginning, the same each time it is called.
        max_batches: Read no further than this; a longer or endless stream is checked up to here.

    Raises:
        AssertionError: The stream breaks a rule; the message says which.

    Example:
        >>> from recollect.streams import from_iterable
        >>> check_stream(lambda: from_iterable([([[0.5]], [1]), ([[0.25]], [0])]))
    """
    stream = build()
    _require(stream.cursor == 0, f"`cursor` is {stream.cursor} before the first batch, not 0")
    batches: list[Batch] = []
    num_given = 0
    for inputs, labels in islice(stream, max_batches):
        _check_batch(len(batches), inputs, labels)
        batches.append((inputs, labels))
        num_given += len(labels)
        _require(
            stream.cursor == num_given,
            f"`cursor` is {stream.cursor} after {num_given} examples",
        )
    _require(len(batches) > 0, "the stream gives no batch")
    if len(batches) < max_batches:
        _check_end(stream, len(batches))
    _check_same(batches, list(islice(build(), max_batches)), "built again, the stream gives other")
    for num_before in sorted({0, 1, len(batches) // 2, len(batches)}):
        _check_cursor(build, batches, num_before)


def _require(holds: bool, broken: str) -> None:
    if not holds:
        raise AssertionError(f"A stream must not do this: {broken}.")


def _check_batch(number: int, inputs: Tensor, labels: Tensor) -> None:
    _require(
        labels.ndim == 1 and len(inputs) == len(labels) > 0,
        f"batch {number} has inputs of shape {tuple(inputs.shape)} and labels of shape "
        f"{tuple(labels.shape)}",
    )
    _require(labels.dtype == torch.int64, f"batch {number} has labels of {labels.dtype}, not int64")


def _check_end(stream: SinglePass, num_batches: int) -> None:
    try:
        length = len(stream)
    except TypeError:
        length = num_batches  # a stream of an iterable without a length has none either
    _require(length == num_batches, f"its length is {length}, but it gives {num_batches} batches")
    try:
        num_again = len(list(stream))
    except StreamError:
        return
    _require(False, f"a second pass gives {num_again} batches instead of raising StreamError")


def _check_cursor(build: Callable[[], SinglePass], batches: list[Batch], num_before: int) -> None:
    stream = build()
    for _ in range(num_before):
        next(stream)
    state = json.loads(json.dumps(stream.state()))
    again = build()
    again.restore(state)
    _require(
        again.cursor == stream.cursor,
        f"restored after {num_before} batches, `cursor` is {again.cursor}, not {stream.cursor}",
    )
    rest = list(islice(again, len(batches) - num_before))
    _check_same(batches[num_before:], rest, f"restored after {num_before} batches, it gives other")


def _check_same(expected: list[Batch], given: list[Batch], broken: str) -> None:
    _require(len(expected) == len(given), f"{broken} numbers of batches")
    for (expected_inputs, expected_labels), (inputs, labels) in zip(expected, given, strict=True):
        _require(torch.equal(expected_labels, labels), f"{broken} labels")
        _require(torch.equal(expected_inputs, inputs), f"{broken} inputs")
