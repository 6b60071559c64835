import pytest
import torch

from recollect.streams import PixelPermutation, Rotation, Unchanged
from recollect.streams.transforms import _interpolated_rotation


def test_a_permutation_is_undone_by_its_inverse(rng: torch.Generator) -> None:
    images = torch.randint(256, (7, 28, 28), generator=rng, dtype=torch.uint8)
    permutation = PixelPermutation.random(784, seed=0, segment_index=1)
    permuted = permutation(images)
    assert not torch.equal(permuted, images)
    assert torch.equal(permutation.inverse()(permuted), images)
    assert permuted.shape == images.shape
    assert permuted.dtype == images.dtype


def test_a_permutation_keeps_every_pixel_value(rng: torch.Generator) -> None:
    images = torch.randint(256, (3, 5, 5), generator=rng, dtype=torch.uint8)
    permuted = PixelPermutation.random(25, seed=0, segment_index=1)(images)
    assert torch.equal(permuted.flatten(1).sort().values, images.flatten(1).sort().values)


def test_channels_are_permuted_alike() -> None:
    plane = torch.arange(16).reshape(1, 1, 4, 4)
    permuted = PixelPermutation.random(16, seed=0, segment_index=1)(plane.expand(2, 3, 4, 4))
    assert torch.equal(permuted[:, 0], permuted[:, 1])
    assert torch.equal(permuted[:, 0], permuted[:, 2])


def test_segments_and_seeds_have_permutations_of_their_own() -> None:
    drawn = {
        tuple(PixelPermutation.random(50, seed=seed, segment_index=k).sources.tolist())
        for seed in range(3)
        for k in range(1, 4)
    }
    assert len(drawn) == 9


def test_positions_named_twice_are_refused() -> None:
    with pytest.raises(ValueError, match="name every position once"):
        PixelPermutation(torch.tensor([0, 0, 1]))


def test_inputs_of_another_size_are_refused() -> None:
    with pytest.raises(ValueError, match="`inputs` has 4 pixels; this permutation is over 9"):
        PixelPermutation(torch.arange(9))(torch.zeros(1, 2, 2))


@pytest.mark.parametrize("angle", [0, 90, 180, 270, 360, -90])
def test_quarter_turns_move_pixels_exactly(angle: int, rng: torch.Generator) -> None:
    images = torch.randint(256, (2, 3, 8, 8), generator=rng, dtype=torch.uint8)
    turned = Rotation(angle)(images)
    assert torch.equal(turned, torch.rot90(images, angle // 90, dims=(-2, -1)))
    assert torch.equal(Rotation(-angle)(turned), images)


@pytest.mark.parametrize("angle", [90.0, 180.0, 270.0])
def test_interpolation_turns_the_same_way_as_exact_quarter_turns(
    angle: float, rng: torch.Generator
) -> None:
    images = torch.randint(256, (2, 9, 9), generator=rng, dtype=torch.uint8)
    assert torch.equal(_interpolated_rotation(images, angle), Rotation(angle)(images))


def test_an_eighth_turn_lifts_a_horizontal_bar_to_the_upper_right() -> None:
    image = torch.zeros(1, 21, 21, dtype=torch.uint8)
    image[0, 10, 10:] = 200
    turned = Rotation(45)(image)[0]
    on_diagonal = torch.stack([turned[10 - k, 10 + k] for k in range(1, 6)])
    below_diagonal = torch.stack([turned[10 + k, 10 + k] for k in range(1, 6)])
    assert int(on_diagonal.min()) > 150
    assert int(below_diagonal.max()) == 0
    assert turned.dtype == torch.uint8


def test_a_half_turn_of_a_wide_image_does_not_shear_it(rng: torch.Generator) -> None:
    images = torch.rand(1, 4, 10, generator=rng)
    torch.testing.assert_close(Rotation(180)(images), images.flip(-1, -2), rtol=0, atol=1e-5)


def test_a_quarter_turn_of_a_wide_image_keeps_distances() -> None:
    image = torch.zeros(1, 5, 9)
    image[0, 2, 6] = 1  # two to the right of the centre
    turned = Rotation(90)(image)[0]
    expected = torch.zeros(5, 9)
    expected[0, 4] = 1  # two above it
    torch.testing.assert_close(turned, expected, rtol=0, atol=1e-5)


def test_vectors_cannot_be_turned() -> None:
    with pytest.raises(ValueError, match="a rotation needs images"):
        Rotation(30)(torch.zeros(2, 784))


def test_an_infinite_angle_is_refused() -> None:
    with pytest.raises(ValueError, match="`angle` is inf"):
        Rotation(float("inf"))


def test_unchanged_gives_the_same_tensor() -> None:
    inputs = torch.zeros(2, 3)
    assert Unchanged()(inputs) is inputs
