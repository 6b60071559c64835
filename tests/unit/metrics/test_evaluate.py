from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from recollect.datasets import Examples
from recollect.metrics import evaluate, fitting_batch_size


@dataclass(frozen=True)
class _Held:
    test: Examples
    validation: Examples


def _examples(answers: list[int], labels: list[int]) -> Examples:
    return Examples(torch.tensor(answers), torch.tensor(labels))


def _answer_with_the_input(inputs: Tensor) -> Tensor:
    return torch.nn.functional.one_hot(inputs, 4).float()


SEGMENTS = [
    _Held(_examples([0, 1, 2], [0, 1, 3]), _examples([1], [1])),
    _Held(_examples([3, 3, 3, 3, 3], [3, 3, 0, 1, 2]), _examples([1, 1], [0, 1])),
]


@pytest.mark.parametrize("batch_size", [1, 2, 256])
def test_counts_do_not_depend_on_the_batch_size(batch_size: int) -> None:
    counts = evaluate(_answer_with_the_input, SEGMENTS, batch_size=batch_size)
    assert counts == [(2, 3), (2, 5)]


def test_validation_is_read_only_when_asked_for() -> None:
    assert evaluate(_answer_with_the_input, SEGMENTS, on="validation") == [(1, 1), (1, 2)]


def test_batches_are_no_larger_than_asked() -> None:
    sizes = []

    def predict(inputs: Tensor) -> Tensor:
        sizes.append(len(inputs))
        return _answer_with_the_input(inputs)

    evaluate(predict, SEGMENTS, batch_size=2)
    assert sizes == [2, 1, 2, 2, 1]


def test_a_segment_without_examples_is_refused() -> None:
    empty = Examples(torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64))
    with pytest.raises(ValueError, match="`on` is 'validation', but a segment has 0"):
        evaluate(_answer_with_the_input, [_Held(empty, empty)], on="validation")


@pytest.mark.parametrize("on", ["Test", "train", "", None])
def test_other_examples_than_held_out_ones_are_refused(on: Any) -> None:
    with pytest.raises(ValueError, match=r"`on` is .*; choose 'test' or 'validation'"):
        evaluate(_answer_with_the_input, SEGMENTS, on=on)


def test_a_batch_size_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="`batch_size` is 0"):
        evaluate(_answer_with_the_input, SEGMENTS, batch_size=0)


@pytest.mark.parametrize(
    ("shape", "size"),
    [((784,), 256), ((3, 32, 32), 256), ((3, 84, 84), 37), ((3, 1024, 1024), 1), ((), 256)],
)
def test_large_examples_are_passed_in_smaller_batches(shape: tuple[int, ...], size: int) -> None:
    assert fitting_batch_size(torch.zeros(2, *shape)) == size
