"""The public check accepts our streams and catches each way to break the promise."""

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any

import pytest
import torch

from recollect.datasets import Examples
from recollect.errors import StreamError
from recollect.streams import (
    Batch,
    SinglePass,
    blurred_boundaries,
    from_iterable,
    imbalanced,
    permuted_pixels,
    rotated,
    split_classes,
)
from recollect.testing import check_stream

IMAGES = Examples(
    torch.arange(60 * 36).remainder(251).to(torch.uint8).reshape(60, 6, 6), torch.arange(60) % 4
)


def _split() -> Any:
    return split_classes(IMAGES, classes_per_segment=2, batch_size=7, seed=3)


def _endless() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for number in count():
        yield torch.full((2, 3), float(number)), torch.tensor([0, 1])


@pytest.mark.parametrize(
    "build",
    [
        _split,
        lambda: permuted_pixels(IMAGES, num_segments=3, examples_per_segment=20, batch_size=7),
        lambda: rotated(IMAGES, angles=[0, 45, 90], examples_per_segment=20, batch_size=7),
        lambda: blurred_boundaries(_split(), width=10),
        lambda: blurred_boundaries(_split(), width="iid"),
        lambda: imbalanced(_split(), factor=0.5),
        lambda: from_iterable(list(_split())),
        lambda: from_iterable(_endless()),
    ],
    ids=["split", "permuted", "rotated", "blurred", "iid", "imbalanced", "list", "endless"],
)
def test_every_stream_of_the_library_passes(build: Callable[[], SinglePass]) -> None:
    check_stream(build, max_batches=50)


class _Broken:
    """A correct stream of six batches with one promise taken away."""

    made = 0

    def __init__(self, flaw: str) -> None:
        type(self).made += 1
        self.flaw = flaw
        self.salt = type(self).made if flaw == "changes" else 0
        self.given = 0
        self.spent = False

    @property
    def cursor(self) -> int:
        return self.given if self.flaw == "counts batches" else 2 * self.given

    def __iter__(self) -> "_Broken":
        if self.spent and self.flaw != "second pass":
            raise StreamError("once")
        if self.spent:
            self.given = 0
        return self

    def __next__(self) -> Batch:
        if self.given == 6:
            self.spent = True
            raise StopIteration
        self.given += 1
        labels = torch.tensor([0] if self.flaw == "loses labels" else [0, 1])
        inputs = torch.full((2, 3), float(self.given + self.salt))
        return inputs, labels.float() if self.flaw == "float labels" else labels

    def __len__(self) -> int:
        return 7 if self.flaw == "wrong length" else 6

    def state(self) -> dict[str, Any]:
        return {"given": self.given}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.given = state["given"]
        if self.flaw == "skips" and self.given:
            self.given = min(self.given + 1, 6)


def test_the_unbroken_example_passes() -> None:
    check_stream(lambda: _Broken("nothing"))


@pytest.mark.parametrize(
    ("flaw", "message"),
    [
        ("counts batches", "`cursor` is 1 after 2 examples"),
        ("second pass", "a second pass gives 6 batches"),
        ("loses labels", r"labels of shape \(1,\)"),
        ("float labels", "not int64"),
        ("wrong length", "its length is 7, but it gives 6"),
        ("changes", "built again, the stream gives other inputs"),
        ("skips", "restored after 1 batches, `cursor` is 4, not 2"),
    ],
)
def test_each_broken_promise_is_named(flaw: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_stream(lambda: _Broken(flaw))
