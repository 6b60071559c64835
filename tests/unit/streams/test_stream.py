import json

import pytest
import torch

from recollect.datasets import Examples
from recollect.errors import StreamError
from recollect.streams import InputTransform, Plan, Segment, Stream, split_classes


@pytest.fixture
def stream(numbered: Examples) -> Stream:
    return split_classes(numbered, classes_per_segment=2, batch_size=7, seed=1)


def test_a_batch_is_inputs_and_labels_and_nothing_else(stream: Stream) -> None:
    for inputs, labels in stream:
        assert torch.equal(inputs[:, 1], labels)


def test_the_length_is_the_number_of_batches_that_come(stream: Stream) -> None:
    assert len(stream) == 18  # three segments of 40: five batches of seven and one of five
    assert [len(labels) for _, labels in stream] == [7, 7, 7, 7, 7, 5] * 3


def test_every_example_comes_exactly_once(stream: Stream) -> None:
    indices = torch.cat([inputs[:, 0] for inputs, _ in stream])
    assert indices.sort().values.tolist() == list(range(120))
    assert stream.num_examples == 120


def test_the_cursor_counts_examples_given(stream: Stream) -> None:
    assert stream.cursor == 0
    cursors = [stream.cursor for _ in stream]
    assert cursors[:7] == [7, 14, 21, 28, 35, 40, 47]
    assert stream.batches_given == 18


def test_boundaries_count_the_batches_given_when_a_segment_is_over(stream: Stream) -> None:
    assert stream.boundaries == (6, 12, 18)
    seen: list[set[int]] = []
    current: set[int] = set()
    for _, labels in stream:
        current |= set(labels.tolist())
        if stream.batches_given in stream.boundaries:
            seen.append(current)
            current = set()
    assert seen == [{0, 1}, {2, 3}, {4, 5}]


def test_a_second_pass_is_refused_and_says_what_to_do(stream: Stream) -> None:
    list(stream)
    with pytest.raises(StreamError, match=r"all its 120 examples.*build the stream again"):
        list(stream)


def test_a_second_pass_is_refused_however_the_first_was_made(stream: Stream) -> None:
    for _ in range(len(stream)):
        next(stream)
    with pytest.raises(StreamError, match="build the stream again"):
        iter(stream)


def test_a_loop_that_was_left_goes_on_where_it_stopped(stream: Stream) -> None:
    whole = [inputs[:, 0].tolist() for inputs, _ in stream.fresh()]
    parts = []
    for inputs, _ in stream:
        parts.append(inputs[:, 0].tolist())
        if len(parts) == 4:
            break
    parts += [inputs[:, 0].tolist() for inputs, _ in stream]
    assert parts == whole


def test_a_fresh_stream_has_its_whole_pass_ahead(stream: Stream) -> None:
    first = [inputs[:, 0].tolist() for inputs, _ in stream]
    assert [inputs[:, 0].tolist() for inputs, _ in stream.fresh()] == first


def test_a_state_survives_json(stream: Stream) -> None:
    for _ in range(5):
        next(stream)
    state = json.loads(json.dumps(stream.state()))
    again = stream.fresh()
    again.restore(state)
    assert again.cursor == 35
    assert torch.equal(next(again)[0], next(stream)[0])


def test_a_stream_restored_at_its_end_has_nothing_more_to_give(stream: Stream) -> None:
    list(stream)
    again = stream.fresh()
    again.restore(stream.state())
    assert list(again) == []


@pytest.mark.parametrize("change", [{"seed": 2}, {"batch_size": 5}, {"classes_per_segment": 3}])
def test_the_cursor_of_another_stream_is_refused(
    change: dict[str, int], stream: Stream, numbered: Examples
) -> None:
    settings = {"classes_per_segment": 2, "batch_size": 7, "seed": 1} | change
    other = split_classes(
        numbered,
        classes_per_segment=settings["classes_per_segment"],
        batch_size=settings["batch_size"],
        seed=settings["seed"],
    )
    with pytest.raises(StreamError, match="cursor of another stream"):
        stream.restore(other.state())


def test_other_inputs_or_another_transform_make_another_stream(numbered: Examples) -> None:
    plan = Plan.by_segment([torch.arange(20)], batch_size=5)
    plain = Stream(numbered, [Segment("all", (0,))], plan)
    shifted = Stream(Examples(numbered.inputs + 1, numbered.labels), [Segment("all", (0,))], plan)
    negated = Stream(numbered, [Segment("all", (0,), torch.neg)], plan)
    assert len({plain.fingerprint, shifted.fingerprint, negated.fingerprint}) == 3


def test_another_order_of_examples_with_equal_labels_makes_another_stream() -> None:
    alike = Examples(torch.arange(9), torch.zeros(9, dtype=torch.int64))
    orders = [torch.arange(9), torch.tensor([0, 1, 2, 3, 4, 5, 6, 8, 7])]
    segments = [Segment("all", (0,))]
    streams = [Stream(alike, segments, Plan.by_segment([o], batch_size=3)) for o in orders]
    assert streams[0].fingerprint != streams[1].fingerprint


def test_a_cursor_inside_a_batch_is_refused(stream: Stream) -> None:
    with pytest.raises(StreamError, match="`cursor` is 3, which is not between two batches"):
        stream.restore({"cursor": 3, "fingerprint": stream.fingerprint})


def test_a_transform_reaches_only_the_examples_of_its_segment(numbered: Examples) -> None:
    origin = torch.tensor([0, 1, 0, 1, 1])
    plan = Plan(torch.tensor([10, 11, 12, 13, 14]), origin, 2, 5, "straight through")
    stream = Stream(numbered, [Segment("as is", (0,)), Segment("negated", (0,), torch.neg)], plan)
    inputs, _ = next(stream)
    assert inputs[:, 0].tolist() == [10, -11, 12, -13, -14]
    assert int(numbered.inputs.min()) == 0  # the source was not written to


@pytest.mark.parametrize("transform", [lambda x: x.float(), lambda x: x[:, :1]])
def test_a_transform_that_changes_shape_or_dtype_is_refused(
    transform: InputTransform, numbered: Examples
) -> None:
    plan = Plan.by_segment([torch.arange(5)], batch_size=5)
    stream = Stream(numbered, [Segment("odd", (0,), transform)], plan)
    with pytest.raises(StreamError, match="The transform of segment `odd` makes"):
        next(stream)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.bool, torch.float64])
def test_inputs_of_any_dtype_have_a_fingerprint(dtype: torch.dtype) -> None:
    examples = Examples(torch.ones(5, 3, dtype=dtype), torch.arange(5))
    plan = Plan.by_segment([torch.arange(5)], batch_size=5)
    assert len(Stream(examples, [Segment("all", (0,))], plan).fingerprint) == 64


def test_the_source_is_not_copied(numbered: Examples, stream: Stream) -> None:
    assert stream.examples.inputs.data_ptr() == numbered.inputs.data_ptr()


def test_a_plan_beyond_the_examples_is_refused(numbered: Examples) -> None:
    plan = Plan.by_segment([torch.tensor([0, 120])], batch_size=5)
    with pytest.raises(ValueError, match="asks for examples 0 to 120 of 120"):
        Stream(numbered, [Segment("all", (0,))], plan)


def test_a_plan_for_other_segments_is_refused(numbered: Examples) -> None:
    plan = Plan.by_segment([torch.arange(5)], batch_size=5)
    with pytest.raises(ValueError, match="`segments` has 2 entries for a plan of 1"):
        Stream(numbered, [Segment("a", (0,)), Segment("b", (1,))], plan)
