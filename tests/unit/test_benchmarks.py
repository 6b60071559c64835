"""Benchmarks at their real sizes. Inputs are expanded from a byte, so they cost no memory."""

import pickle
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from recollect import datasets
from recollect.benchmarks import (
    RECIPES,
    Benchmark,
    benchmark,
    benchmark_from,
    benchmark_from_stream,
)
from recollect.benchmarks.scaling import centred, flat_unit, unit
from recollect.datasets import Examples, LabelledData
from recollect.errors import DataError
from recollect.metrics import evaluate
from recollect.streams import Stream, Unchanged, blurred_boundaries, rotated


def _part(counts: list[int], *shape: int) -> Examples:
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    labels = labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(7))]
    bytes_ = (torch.arange(len(labels)) % 256).to(torch.uint8)
    return Examples(bytes_.reshape(-1, *[1] * len(shape)).expand(-1, *shape), labels)


def _labelled(name: str, train: list[int], test: list[int], *shape: int) -> LabelledData:
    names = tuple(f"class {number}" for number in range(len(train)))
    return LabelledData(name, _part(train, *shape), _part(test, *shape), names)


MNIST = _labelled("mnist", list(range(700, 900, 20)), list(range(90, 110, 2)), 28, 28)
CIFAR10 = _labelled("cifar10", [5000] * 10, [1000] * 10, 3, 32, 32)
MINI_IMAGENET = _labelled("mini-imagenet", [500] * 100, [100] * 100, 3, 84, 84)
LANGUAGES = _labelled("languages", [280] * 20, [70] * 20, 32)
SOURCES = {
    "languages-split": LANGUAGES,
    "mnist-split": MNIST,
    "mnist-permuted": MNIST,
    "cifar10-split": CIFAR10,
    "mini-imagenet-split": MINI_IMAGENET,
}
CELLS = sorted(RECIPES)


def _sizes(built: Benchmark) -> list[int]:
    return built.stream.plan.segment_sizes


def _streamed(stream: Stream) -> set[int]:
    return set(stream.plan.order.tolist())


@pytest.mark.parametrize(
    ("name", "segments", "streamed", "held_out", "batches"),
    [
        ("mnist-split", 5, 1000, 200, 500),
        ("mnist-permuted", 10, 1000, 1000, 1000),
        ("cifar10-split", 5, 9750, 250, 4875),
        ("mini-imagenet-split", 20, 2500, 0, 5000),
    ],
)
def test_the_paper_protocol_has_the_papers_numbers(
    name: str, segments: int, streamed: int, held_out: int, batches: int
) -> None:
    built = benchmark(name, data=SOURCES[name])
    assert _sizes(built) == [streamed] * segments
    assert [len(segment.validation) for segment in built.segments] == [held_out] * segments
    assert len(built.stream) == batches


@pytest.mark.parametrize(
    ("name", "protocol", "streamed", "held_out"),
    [
        ("mnist-permuted", "mir-official", [1010] * 10, [395] * 10),  # 5 % of 7900
        ("cifar10-split", "mir-official", [9500] * 5, [500] * 5),
        ("mini-imagenet-split", "mir-official", [2370] * 20, [125] * 20),  # 2375, five dropped
        ("cifar10-split", "raptormai", [10000] * 5, [0] * 5),
        ("mini-imagenet-split", "raptormai", [2500] * 20, [0] * 20),
    ],
)
def test_the_other_protocols_have_the_numbers_of_their_code(
    name: str, protocol: str, streamed: list[int], held_out: list[int]
) -> None:
    built = benchmark(name, data=SOURCES[name], protocol=protocol)
    assert _sizes(built) == streamed
    assert [len(segment.validation_indices) for segment in built.segments] == held_out


@pytest.mark.parametrize(
    ("name", "protocol", "widths", "rate"),
    [
        ("mnist-split", "paper", [784, 100, 100, 10], 0.05),
        ("mnist-permuted", "paper", [784, 100, 100, 10], 0.05),
        ("mnist-split", "mir-official", [784, 400, 400, 10], 0.1),
        ("mnist-permuted", "mir-official", [784, 400, 400, 10], 0.05),
    ],
)
def test_a_protocol_brings_the_network_and_the_rate_of_its_script(
    name: str, protocol: str, widths: list[int], rate: float
) -> None:
    built = benchmark(name, data=MNIST, protocol=protocol)
    assert [len(p) for p in built.model().parameters() if p.ndim == 2] == widths[1:]
    assert built.model()(built.transform(MNIST.train.inputs[:2])).shape == (2, widths[-1])
    assert built.defaults.learning_rate == rate


def test_mir_gives_one_batch_more_than_asked_whatever_the_batch_size() -> None:
    for batch_size, examples in [(10, 1010), (30, 1020), (1, 1001)]:
        built = benchmark("mnist-split", data=MNIST, protocol="mir-official", batch_size=batch_size)
        assert _sizes(built) == [examples] * 5
    asked = benchmark("mnist-split", data=MNIST, protocol="mir-official", examples_per_segment=500)
    assert _sizes(asked) == [500] * 5


@pytest.mark.parametrize(("name", "protocol"), CELLS)
def test_the_stream_never_gives_a_held_out_example(name: str, protocol: str) -> None:
    built = benchmark(name, data=SOURCES[name], protocol=protocol, seed=3)
    held_out = {i for segment in built.segments for i in segment.validation_indices.tolist()}
    assert not held_out & _streamed(built.stream)


@pytest.mark.parametrize(("name", "protocol"), CELLS)
def test_validation_and_test_hold_the_classes_of_the_stream(name: str, protocol: str) -> None:
    source = SOURCES[name]
    built = benchmark(name, data=source, protocol=protocol, seed=3)
    for number, segment in enumerate(built.segments):
        classes = set(segment.classes)
        assert set(source.train.labels[built.stream.indices_of(number)].tolist()) == classes
        assert set(source.test.labels[segment.test_indices].tolist()) == classes
        assert set(source.train.labels[segment.validation_indices].tolist()) <= classes
        expected = int(torch.isin(source.test.labels, torch.tensor(segment.classes)).sum())
        assert len(segment.test_indices) == expected


@pytest.mark.parametrize(
    "name", ["mnist-split", "cifar10-split", "mini-imagenet-split", "languages-split"]
)
def test_every_test_example_is_in_exactly_one_segment_of_a_split(name: str) -> None:
    built = benchmark(name, data=SOURCES[name])
    tested = torch.cat([segment.test_indices for segment in built.segments])
    assert tested.sort().values.tolist() == list(range(len(SOURCES[name].test)))


def test_classes_come_in_ascending_pairs_in_the_paper() -> None:
    built = benchmark("cifar10-split", data=CIFAR10, seed=5)
    assert [s.classes for s in built.segments] == [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]


def test_raptormai_shuffles_the_classes_with_the_seed() -> None:
    orders = {
        tuple(
            segment.classes
            for segment in benchmark(
                "cifar10-split", data=CIFAR10, protocol="raptormai", seed=seed
            ).segments
        )
        for seed in range(4)
    }
    assert len(orders) == 4


def test_seeds_change_subsets_held_out_sets_and_permutations_in_the_paper() -> None:
    first, second = (benchmark("mnist-permuted", data=MNIST, seed=seed) for seed in (0, 1))
    assert _streamed(first.stream) != _streamed(second.stream)
    held = [built.segments[0].validation_indices for built in (first, second)]
    assert not torch.equal(held[0], held[1])
    ramp = torch.arange(784).reshape(1, 28, 28)
    moved = [built.segments[1].transform(ramp) for built in (first, second)]
    assert not torch.equal(moved[0], moved[1])


def test_mir_keeps_held_out_sets_and_permutations_over_seeds() -> None:
    first, second = (
        benchmark("mnist-permuted", data=MNIST, seed=seed, protocol="mir-official")
        for seed in (0, 1)
    )
    held = [built.segments[0].validation_indices for built in (first, second)]
    assert torch.equal(held[0], held[1])
    ramp = torch.arange(784).reshape(1, 28, 28)
    assert torch.equal(first.segments[1].transform(ramp), second.segments[1].transform(ramp))
    assert _streamed(first.stream) != _streamed(second.stream)


def test_the_same_seed_gives_the_same_benchmark() -> None:
    first, second = (benchmark("mnist-split", data=MNIST, seed=4) for _ in range(2))
    assert first.stream.fingerprint == second.stream.fingerprint
    for one, other in zip(first.segments, second.segments, strict=True):
        assert torch.equal(one.validation_indices, other.validation_indices)


def test_test_sets_are_permuted_as_the_stream_is(rng: torch.Generator) -> None:
    images = torch.randint(256, (2100, 28, 28), generator=rng, dtype=torch.uint8)
    examples = Examples(images, torch.arange(2100) % 10)
    source = LabelledData("noise", examples, examples, tuple("0123456789"))
    built = benchmark("mnist-permuted", data=source)
    assert torch.equal(built.segments[0].test.inputs, images)
    assert isinstance(built.segments[0].transform, Unchanged)
    for number in (1, 9):
        segment = built.segments[number]
        assert segment.transform is built.stream.segments[number].transform
        assert not torch.equal(segment.test.inputs, images)
        assert torch.equal(segment.test.inputs, segment.transform(images))
        held_out = images[segment.validation_indices]
        assert torch.equal(segment.validation.inputs, segment.transform(held_out))
        assert torch.equal(segment.test.labels, examples.labels)


def test_inputs_are_scaled_as_the_protocol_says() -> None:
    black_to_white = torch.tensor([[[0, 51], [204, 255]]], dtype=torch.uint8)
    assert flat_unit(black_to_white).tolist() == [pytest.approx([0, 0.2, 0.8, 1])]
    assert unit(black_to_white).shape == (1, 2, 2)
    assert centred(black_to_white).flatten().tolist() == pytest.approx([-1, -0.6, 0.6, 1])
    used = {
        (name, protocol): benchmark(name, data=SOURCES[name], protocol=protocol).transform
        for name, protocol in CELLS
    }
    assert used["mnist-split", "paper"] is flat_unit
    assert used["cifar10-split", "paper"] is centred
    assert used["cifar10-split", "raptormai"] is unit


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_the_model_reads_what_the_transform_makes(name: str) -> None:
    built = benchmark(name, data=SOURCES[name])
    inputs, _ = next(built.stream)
    with torch.no_grad():
        logits = built.model().eval()(built.transform(inputs[:2]))
    assert logits.shape == (2, built.num_classes)


def test_the_model_follows_the_seed_unless_given_one() -> None:
    built = benchmark("mnist-split", data=MNIST, seed=4)

    def weights(seed: int | None = None) -> Tensor:
        return next(built.model(seed).parameters())

    assert torch.equal(weights(), weights())
    assert torch.equal(weights(), weights(4))
    assert not torch.equal(weights(), weights(5))


@pytest.mark.parametrize(
    ("name", "defaults"),
    [
        ("mnist-split", (10, 10, 500, 0.05, 1)),
        ("mnist-permuted", (10, 10, 500, 0.05, 1)),
        ("cifar10-split", (10, 10, 500, 0.1, 1)),
        ("mini-imagenet-split", (10, 20, 10_000, 0.1, 3)),
    ],
)
def test_the_defaults_are_the_papers(name: str, defaults: tuple[float, ...]) -> None:
    told = benchmark(name, data=SOURCES[name]).defaults
    given = (told.batch_size, told.replay, told.capacity, told.learning_rate, told.iterations)
    assert given == defaults


def test_a_batch_size_reaches_stream_and_defaults() -> None:
    built = benchmark("mnist-split", data=MNIST, batch_size=64)
    assert built.stream.batch_size == built.defaults.batch_size == 64
    assert len(next(built.stream)[1]) == 64


def test_examples_can_be_held_out_where_the_paper_holds_none() -> None:
    built = benchmark("mini-imagenet-split", data=MINI_IMAGENET, validation_per_segment=250)
    assert _sizes(built) == [2250] * 20
    assert [len(segment.validation_indices) for segment in built.segments] == [250] * 20


@pytest.mark.parametrize(("name", "protocol"), CELLS)
def test_the_first_segments_are_those_of_the_whole_stream(name: str, protocol: str) -> None:
    whole, first = (
        benchmark(name, data=SOURCES[name], protocol=protocol, seed=3, num_segments=num)
        for num in (None, 3)
    )
    assert [segment.name for segment in first.segments] == [
        segment.name for segment in whole.segments[:3]
    ]
    assert _sizes(first) == _sizes(whole)[:3]
    order = first.stream.plan.order
    assert torch.equal(order, whole.stream.plan.order[: len(order)])
    for mine, theirs in zip(first.segments, whole.segments, strict=False):
        assert torch.equal(mine.validation_indices, theirs.validation_indices)
        assert torch.equal(mine.test_indices, theirs.test_indices)
    pixels = torch.arange(28 * 28).reshape(1, 28, 28)
    if name == "mnist-permuted":
        assert torch.equal(first.segments[2].transform(pixels), whole.segments[2].transform(pixels))
    # The same outputs, so that a model of one can go on with the other.
    assert first.num_classes == whole.num_classes


@pytest.mark.parametrize("name", ["mnist-split", "cifar10-split", "mini-imagenet-split"])
def test_a_segment_of_random_classes_has_as_many_examples_per_class(name: str) -> None:
    usual = benchmark(name, data=SOURCES[name], seed=3)
    random = benchmark(name, data=SOURCES[name], seed=3, has_random_groups=True)
    each = _sizes(usual)[0] / len(usual.segments[0].classes)
    kept = len(usual.segments[0].validation_indices) / len(usual.segments[0].classes)
    nums = [len(segment.classes) for segment in random.segments]
    assert len(set(nums)) > 1
    assert _sizes(random) == [round(each * num) for num in nums]
    assert [len(s.validation_indices) for s in random.segments] == [round(kept * n) for n in nums]
    assert sum(_sizes(random)) == sum(_sizes(usual))
    assert sorted(c for segment in random.segments for c in segment.classes) == sorted(
        c for segment in usual.segments for c in segment.classes
    )


def test_permuted_inputs_have_no_classes_to_group() -> None:
    with pytest.raises(ValueError, match="`has_random_groups` is for class streams"):
        benchmark("mnist-permuted", data=MNIST, has_random_groups=True)


def test_a_fresh_stream_leaves_the_first_where_it_is() -> None:
    built = benchmark("mnist-split", data=MNIST)
    next(built.stream)
    fresh = built.fresh_stream()
    assert (built.stream.cursor, fresh.cursor) == (10, 0)


def test_samples_are_what_the_learner_will_meet(rng: torch.Generator) -> None:
    images = torch.randint(256, (2100, 28, 28), generator=rng, dtype=torch.uint8)
    examples = Examples(images, torch.arange(2100) % 10)
    source = LabelledData("noise", examples, examples, tuple("0123456789"))
    built = benchmark("mnist-permuted", data=source)
    samples = built.samples(10)
    assert [name for name, _ in samples][:2] == ["unpermuted", "permutation 1"]
    assert built.stream.cursor == 0
    firsts = [inputs for number, (inputs, _) in enumerate(built.stream) if number % 100 == 0]
    for (_, shown), met in zip(samples, firsts, strict=True):
        assert shown.dtype == torch.uint8
        assert torch.equal(shown, met)


def test_the_stream_can_be_replaced_by_a_blurred_one() -> None:
    sharp = benchmark("mnist-split", data=MNIST)
    blurred = replace(sharp, stream=blurred_boundaries(sharp.stream, width=200))
    assert blurred.stream.num_examples == sharp.stream.num_examples
    assert _streamed(blurred.fresh_stream()) == _streamed(sharp.stream)
    samples = blurred.samples(200)
    assert torch.equal(samples[1][1], blurred.stream.peek(1000, 1200)[0])
    assert [len(shown) for _, shown in blurred.samples(5000)] == [1000] * 5


def test_evaluation_reads_the_test_sets() -> None:
    built = benchmark("mnist-split", data=MNIST)

    def always_two(inputs: Tensor) -> Tensor:
        return torch.nn.functional.one_hot(torch.full((len(inputs),), 2), 10)

    # Classes 0 to 9 have 90, 92, ... 108 test examples; class 2 has 94.
    assert evaluate(always_two, built.segments) == [
        (0, 182), (94, 190), (0, 198), (0, 206), (0, 214),
    ]  # fmt: skip


def test_your_own_data_takes_one_line() -> None:
    own = benchmark_from(CIFAR10, classes_per_segment=5, validation_per_segment=100, seed=2)
    assert _sizes(own) == [24900, 24900]
    assert own.segments[1].classes == (5, 6, 7, 8, 9)
    assert own.transform is centred
    assert own.defaults.capacity == 500
    held_out = {i for segment in own.segments for i in segment.validation_indices.tolist()}
    assert len(held_out) == 200
    assert not held_out & _streamed(own.stream)


def test_your_own_floats_get_an_mlp_and_stay_floats() -> None:
    part = Examples(
        torch.randn(40, 7, generator=torch.Generator().manual_seed(0)), torch.arange(40) % 4
    )
    own = benchmark_from(
        LabelledData("floats", part, part, ("a", "b", "c", "d")), classes_per_segment=1
    )
    inputs, _ = next(own.stream)
    assert torch.equal(own.transform(inputs), inputs)
    assert own.model()(inputs).shape == (10, 4)


def test_your_own_model_and_scaling_are_used() -> None:
    own = benchmark_from(
        MNIST,
        classes_per_segment=2,
        transform=unit,
        model=lambda: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10)),
    )
    assert own.transform is unit
    assert len(list(own.model().parameters())) == 2


def test_a_benchmark_can_be_made_around_any_stream() -> None:
    turned = rotated(MNIST.train, angles=[0, 90], examples_per_segment=100, batch_size=5)
    own = benchmark_from_stream(MNIST, turned)
    assert own.stream is turned
    assert own.defaults.batch_size == 5
    assert [len(segment.test) for segment in own.segments] == [len(MNIST.test)] * 2
    assert [len(segment.validation) for segment in own.segments] == [0, 0]


def test_a_stream_over_something_else_is_refused() -> None:
    turned = rotated(MNIST.test, angles=[0, 90], examples_per_segment=100)
    with pytest.raises(ValueError, match=r"`stream` is not over `data\.train`"):
        benchmark_from_stream(MNIST, turned)


def test_a_benchmarks_model_builder_can_be_sent_to_a_worker() -> None:
    built = benchmark("mnist-split", data=MNIST)
    assert pickle.loads(pickle.dumps(built.build_model))().state_dict().keys()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "mnist"}, "`name` is 'mnist'; choose one of cifar10-split, languages-split"),
        (
            {"protocol": "gem"},
            "`protocol` is 'gem'; mnist-split is defined for mir-official, paper",
        ),
        ({"protocol": "raptormai"}, "defined for mir-official, paper"),
        ({"num_segments": 6}, "`num_segments` is 6, but there are 5; pass 1 to 5, or nothing"),
        ({"num_segments": 0}, "`num_segments` is 0"),
        (
            {"name": "mnist-permuted", "num_segments": 11},
            "`num_segments` is 11, but there are 10; pass 1 to 10",
        ),
        ({"examples_per_segment": 1300}, "`examples_per_segment` is 1300, but segment `classes 0"),
        ({"validation_per_segment": 1420}, "`validation_per_segment` is 1420, but segment"),
    ],
)
def test_what_cannot_be_built_is_refused(arguments: dict[str, Any], message: str) -> None:
    asked: dict[str, Any] = {"name": "mnist-split", "data": MNIST} | arguments
    with pytest.raises(ValueError, match=message):
        benchmark(**asked)


def test_no_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="`num` is 0"):
        benchmark("mnist-split", data=MNIST).samples(0)


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        ({"name": "mnist-split"}, ("mnist-embedded", None)),
        ({"name": "mnist-permuted", "data": "mnist", "root": "here"}, ("mnist", "here")),
    ],
)
def test_data_is_loaded_by_name_from_where_the_user_says(
    arguments: dict[str, Any], asked: tuple[str, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = []

    def load(name: str, *, root: str | None = None) -> LabelledData:
        loads.append((name, root))
        return MNIST

    monkeypatch.setattr(datasets, "load", load, raising=False)
    assert benchmark(**arguments).segments[0].test_source is MNIST.test
    assert loads == [asked]


@pytest.mark.parametrize(("name", "num_segments"), [("mnist-split", 5), ("mnist-permuted", 10)])
def test_the_embedded_digits_make_the_papers_protocol(name: str, num_segments: int) -> None:
    built = benchmark(name, seed=1)
    assert _sizes(built) == [1000] * num_segments
    held_out = {i for segment in built.segments for i in segment.validation_indices.tolist()}
    assert not held_out & _streamed(built.stream)
    for inputs, labels in built.stream:
        assert inputs.dtype == torch.uint8
        assert inputs.shape == (10, 28, 28)
        assert labels.shape == (10,)
    model = built.model()
    with torch.no_grad():
        counts = evaluate(lambda inputs: model(built.transform(inputs)), built.segments)
    assert all(0 <= correct <= total and total > 0 for correct, total in counts)


def test_the_embedded_training_digits_are_not_among_the_test_digits() -> None:
    segment = benchmark("mnist-permuted").segments[0]
    train = {row.numpy().tobytes() for row in segment.train_source.inputs}
    test = [row.numpy().tobytes() for row in segment.test_source.inputs]
    assert not any(row in train for row in test)


@pytest.mark.parametrize(
    ("name", "streamed", "tested"),
    [("cifar10-split", 9750, 2000), ("mini-imagenet-split", 2500, 500)],
)
def test_large_data_on_this_machine_makes_the_papers_protocol(
    name: str, streamed: int, tested: int
) -> None:
    try:
        built = benchmark(name, seed=1)
    except DataError as missing:
        pytest.skip(f"{name} needs data that is not on this machine: {missing}")
    assert set(_sizes(built)) == {streamed}
    held_out = {i for segment in built.segments for i in segment.validation_indices.tolist()}
    assert not held_out & _streamed(built.stream)
    for number, segment in enumerate(built.segments):
        labels = segment.train_source.labels[built.stream.indices_of(number)]
        assert set(labels.tolist()) == set(segment.classes)
        assert len(segment.test_indices) == tested
    inputs, _ = next(built.stream)
    stored = built.segments[0].train_source.inputs
    assert torch.equal(inputs, stored[built.stream.plan.order[:10]])
    assert built.stream.examples.inputs.data_ptr() == stored.data_ptr()
