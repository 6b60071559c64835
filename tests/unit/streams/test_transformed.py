import pytest
import torch

from recollect.datasets import Examples
from recollect.streams import PixelPermutation, Rotation, permuted_pixels, rotated


@pytest.fixture
def images(rng: torch.Generator) -> Examples:
    inputs = torch.randint(256, (60, 6, 6), generator=rng, dtype=torch.uint8)
    return Examples(inputs, torch.arange(60) % 3)


def test_the_first_segment_is_unpermuted(images: Examples) -> None:
    stream = permuted_pixels(images, num_segments=3, examples_per_segment=20, batch_size=20)
    inputs, labels = next(stream)
    assert torch.equal(inputs, images.inputs[stream.indices_of(0)])
    assert torch.equal(labels, images.labels[stream.indices_of(0)])


def test_later_segments_are_permuted_and_can_be_undone(images: Examples) -> None:
    stream = permuted_pixels(images, num_segments=3, examples_per_segment=20, batch_size=20)
    for segment_index, (inputs, _) in enumerate(stream):
        if segment_index == 0:
            continue
        originals = images.inputs[stream.indices_of(segment_index)]
        permutation = stream.segments[segment_index].transform
        assert isinstance(permutation, PixelPermutation)
        assert not torch.equal(inputs, originals)
        assert torch.equal(permutation.inverse()(inputs), originals)


def test_a_segment_is_the_same_however_many_follow(images: Examples) -> None:
    few = permuted_pixels(images, num_segments=2, examples_per_segment=20, batch_size=5)
    many = permuted_pixels(images, num_segments=9, examples_per_segment=20, batch_size=5)
    for (few_inputs, _), (many_inputs, _) in zip(few, many, strict=False):
        assert torch.equal(few_inputs, many_inputs)


def test_permutations_do_not_depend_on_how_many_examples_are_drawn(images: Examples) -> None:
    drawn = [
        permuted_pixels(images, num_segments=2, examples_per_segment=n).segments[1].transform
        for n in (10, 50)
    ]
    assert torch.equal(drawn[0](images.inputs), drawn[1](images.inputs))


def test_permutations_can_be_held_fixed_while_subsets_change(images: Examples) -> None:
    streams = [
        permuted_pixels(
            images, num_segments=2, examples_per_segment=9, seed=seed, permutation_seed=0
        )
        for seed in (1, 2)
    ]
    first, second = (stream.segments[1].transform(images.inputs) for stream in streams)
    assert torch.equal(first, second)
    assert not torch.equal(streams[0].indices_of(1), streams[1].indices_of(1))


def test_every_segment_draws_a_subset_of_its_own(images: Examples) -> None:
    stream = permuted_pixels(images, num_segments=3, examples_per_segment=20)
    subsets = {frozenset(stream.indices_of(k).tolist()) for k in range(3)}
    assert len(subsets) == 3
    assert all(len(subset) == 20 for subset in subsets)


def test_rotated_segments_hold_turned_images(images: Examples) -> None:
    stream = rotated(images, angles=[0, 90, 30], batch_size=60)
    for segment_index, (angle, (inputs, _)) in enumerate(zip([0, 90, 30], stream, strict=True)):
        originals = images.inputs[stream.indices_of(segment_index)]
        assert torch.equal(inputs, Rotation(angle)(originals))
    assert [segment.name for segment in stream.segments][2] == "rotated 30 degrees"


def test_angles_given_twice_are_refused(images: Examples) -> None:
    with pytest.raises(ValueError, match="each only once"):
        rotated(images, angles=[10, 10])


def test_no_segments_are_refused(images: Examples) -> None:
    with pytest.raises(ValueError, match="`num_segments` is 0"):
        permuted_pixels(images, num_segments=0)
