import json
from collections.abc import Iterator
from itertools import count, islice

import numpy as np
import pytest
import torch

from recollect.errors import StreamError
from recollect.streams import from_iterable


def _endless() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for start in count(step=3):
        numbers = torch.arange(start, start + 3)
        yield numbers.float(), numbers % 5


def _finite(num_batches: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return list(islice(_endless(), num_batches))


def test_an_endless_iterable_streams_and_is_not_read_ahead() -> None:
    source = _endless()
    stream = from_iterable(source)
    assert [labels.tolist() for _, labels in islice(stream, 2)] == [[0, 1, 2], [3, 4, 0]]
    assert stream.cursor == 6
    assert next(source)[0].tolist() == [6, 7, 8]


def test_arrays_become_tensors_with_int64_labels() -> None:
    batch = (np.zeros((2, 4), dtype=np.uint8), np.array([1, 0], dtype=np.int32))
    inputs, labels = next(from_iterable([batch]))
    assert inputs.dtype == torch.uint8
    assert labels.dtype == torch.int64


def test_a_sized_iterable_has_a_length() -> None:
    assert len(from_iterable(_finite(4))) == 4


def test_an_unsized_iterable_has_none_and_says_so() -> None:
    with pytest.raises(TypeError, match="`batches` has no length"):
        len(from_iterable(_endless()))


def test_a_stream_without_a_length_is_still_true() -> None:
    assert from_iterable(_endless())


def test_a_second_pass_is_refused_even_over_a_list() -> None:
    stream = from_iterable(_finite(2))
    assert len(list(stream)) == 2
    with pytest.raises(StreamError, match="all its 6 examples"):
        list(stream)


def test_a_restored_stream_goes_on_with_the_same_batches() -> None:
    stream = from_iterable(_endless())
    for _ in range(7):
        next(stream)
    state = json.loads(json.dumps(stream.state()))
    again = from_iterable(_endless())
    again.restore(state)
    assert again.cursor == stream.cursor == 21
    assert torch.equal(next(again)[0], next(stream)[0])


def test_restoring_into_a_stream_that_has_begun_is_refused() -> None:
    stream = from_iterable(_endless())
    state = stream.state()
    next(stream)
    with pytest.raises(StreamError, match="has given 1 batches already"):
        stream.restore(state)


@pytest.mark.parametrize("other", [_finite(1), [(x, y + 1) for x, y in _finite(3)]])
def test_a_cursor_of_other_batches_is_refused(
    other: list[tuple[torch.Tensor, torch.Tensor]],
) -> None:
    stream = from_iterable(_finite(3))
    next(stream)
    next(stream)
    with pytest.raises(StreamError, match="cursor of another stream"):
        from_iterable(other).restore(stream.state())


def test_labels_that_are_not_whole_numbers_are_refused() -> None:
    stream = from_iterable([(torch.zeros(2, 2), torch.tensor([0.5, 1.0]))])
    with pytest.raises(StreamError, match=r"Batch 0 has labels of torch\.float32"):
        next(stream)


def test_a_batch_with_too_few_labels_is_refused() -> None:
    stream = from_iterable([(torch.zeros(3, 2), torch.zeros(2))])
    with pytest.raises(StreamError, match=r"Batch 0 has labels of shape \(2,\)"):
        next(stream)
