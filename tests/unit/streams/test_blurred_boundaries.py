import pytest
import torch

from recollect.datasets import Examples
from recollect.errors import StreamError
from recollect.streams import Stream, blurred_boundaries, permuted_pixels, split_classes

WIDTH = 16
RUNS = 4000
# Each statistical test below checks at most 120 positions at z < 6.5: false alarms below 1e-8.
Z_LIMIT = 6.5


@pytest.fixture
def sharp(numbered: Examples) -> Stream:
    return split_classes(numbered, classes_per_segment=2, batch_size=10)


def _share_of_segment(sharp: Stream, segment_index: int, *, width: int) -> torch.Tensor:
    counts = torch.zeros(sharp.num_examples)
    for seed in range(RUNS):
        blurred = blurred_boundaries(sharp, width=width, seed=seed)
        counts += blurred.plan.origin == segment_index
    return counts / RUNS


def test_the_later_segment_fades_in_along_a_straight_line(sharp: Stream) -> None:
    share = _share_of_segment(sharp, 1, width=WIDTH)[40 - WIDTH // 2 : 40 + WIDTH // 2]
    stated = (torch.arange(WIDTH) + 0.5) / WIDTH
    z = (share - stated) / (stated * (1 - stated) / RUNS).sqrt()
    assert float(z.abs().max()) < Z_LIMIT


def test_outside_the_windows_nothing_moves(sharp: Stream) -> None:
    blurred = blurred_boundaries(sharp, width=WIDTH)
    moved = (blurred.plan.order != sharp.plan.order).nonzero().flatten()
    assert len(moved) > 0
    distance = torch.minimum((moved - 39.5).abs(), (moved - 79.5).abs())
    assert float(distance.max()) < WIDTH / 2


@pytest.mark.parametrize("width", [0, 2, WIDTH, 40, "iid"])
def test_every_example_still_arrives_exactly_once(sharp: Stream, width: int) -> None:
    blurred = blurred_boundaries(sharp, width=width)
    indices = torch.cat([inputs[:, 0] for inputs, _ in blurred])
    assert indices.sort().values.tolist() == list(range(120))


def test_labels_stay_with_their_inputs(sharp: Stream) -> None:
    for inputs, labels in blurred_boundaries(sharp, width="iid"):
        assert torch.equal(inputs[:, 1], labels)


def test_width_zero_is_the_sharp_stream(sharp: Stream) -> None:
    blurred = blurred_boundaries(sharp, width=0)
    for (blurred_inputs, _), (sharp_inputs, _) in zip(blurred, sharp, strict=True):
        assert torch.equal(blurred_inputs, sharp_inputs)


def test_iid_brings_every_segment_everywhere_equally_often(sharp: Stream) -> None:
    counts = torch.zeros(3, 120)
    for seed in range(RUNS):
        origin = blurred_boundaries(sharp, width="iid", seed=seed).plan.origin
        counts += torch.nn.functional.one_hot(origin, 3).T
    z = (counts / RUNS - 1 / 3) / (1 / 3 * 2 / 3 / RUNS) ** 0.5
    assert float(z.abs().max()) < Z_LIMIT


def test_a_blurred_example_keeps_the_transform_of_its_segment(rng: torch.Generator) -> None:
    images = torch.randint(256, (40, 4, 4), generator=rng, dtype=torch.uint8)
    sharp = permuted_pixels(Examples(images, torch.zeros(40).long()), num_segments=2, batch_size=10)
    blurred = blurred_boundaries(sharp, width=40)
    inputs = torch.cat([batch for batch, _ in blurred])
    for position, (index, origin) in enumerate(
        zip(blurred.plan.order.tolist(), blurred.plan.origin.tolist(), strict=True)
    ):
        expected = sharp.segments[origin].transform(images[index : index + 1])[0]
        assert torch.equal(inputs[position], expected)


def test_batches_are_cut_straight_through(numbered: Examples) -> None:
    sharp = split_classes(numbered, classes_per_segment=2, batch_size=7)
    blurred = blurred_boundaries(sharp, width=8)
    assert [len(labels) for _, labels in blurred] == [7] * 17 + [1]
    # 40, 80 and 120 examples have been given after 6 (42), 12 (84) and 18 (120) batches.
    assert blurred.boundaries == (6, 12, 18)


@pytest.mark.parametrize("width", [-2, 7, 42])
def test_a_width_that_has_no_meaning_is_refused(sharp: Stream, width: int) -> None:
    with pytest.raises(ValueError, match=f"`width` is {width}; pass an even number from 0 to 40"):
        blurred_boundaries(sharp, width=width)


def test_blurring_twice_is_refused(sharp: Stream) -> None:
    with pytest.raises(ValueError, match="blurred already"):
        blurred_boundaries(blurred_boundaries(sharp, width=4), width=4)


def test_a_stream_that_has_begun_is_refused(sharp: Stream) -> None:
    next(sharp)
    with pytest.raises(StreamError, match="has given 10 examples already"):
        blurred_boundaries(sharp, width=4)
