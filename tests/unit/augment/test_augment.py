from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from recollect.augment import ColourChange, Compose, PerExample, RandomCrop, RandomFlip

EACH = [RandomCrop(2), RandomFlip(), ColourChange(), Compose(RandomCrop(2), RandomFlip())]


def images(count: int = 6, dtype: torch.dtype = torch.float32) -> Tensor:
    drawn = torch.rand(count, 3, 8, 9, generator=torch.Generator().manual_seed(0))
    return (drawn * 255).to(dtype) if not dtype.is_floating_point else drawn.to(dtype)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("augment", EACH, ids=repr)
def test_shape_and_dtype_stay_and_the_images_given_are_untouched(
    augment: Callable[[Tensor], Tensor], dtype: torch.dtype
) -> None:
    given = images(dtype=dtype)
    before = given.clone()
    found = augment(given)
    assert (found.shape, found.dtype) == (given.shape, given.dtype)
    assert torch.equal(given, before)


@pytest.mark.parametrize("augment", EACH, ids=repr)
def test_draws_follow_torchs_generator_and_differ_between_calls(
    augment: Callable[[Tensor], Tensor],
) -> None:
    torch.manual_seed(3)
    first, second = augment(images()), augment(images())
    torch.manual_seed(3)
    assert torch.equal(augment(images()), first)
    assert not torch.equal(first, second)


def test_every_crop_is_a_window_of_its_padded_image_and_every_window_comes_up() -> None:
    given = images(400)
    found = RandomCrop(padding=1)(given)
    padded = torch.nn.functional.pad(given, (1, 1, 1, 1))
    corners = []
    for index in range(len(given)):
        at = [
            (top, left)
            for top in range(3)
            for left in range(3)
            if torch.equal(found[index], padded[index, :, top : top + 8, left : left + 9])
        ]
        assert len(at) == 1
        corners += at
    # 400 draws of 9 windows: each comes up 44 times on average, less than 15 times never.
    assert all(corners.count((top, left)) > 15 for top in range(3) for left in range(3))


def test_grey_images_without_channels_are_cropped_and_flipped_alike() -> None:
    given = images()
    for augment in (RandomCrop(2), RandomFlip()):
        torch.manual_seed(0)
        with_channels = augment(given)
        torch.manual_seed(0)
        assert torch.equal(augment(given[:, 1]), with_channels[:, 1])


def test_a_flip_mirrors_some_images_and_leaves_the_others() -> None:
    given = images(200)
    found = RandomFlip(share=0.25)(given)
    mirrored = (found == given.flip(-1)).flatten(1).all(1)
    same = (found == given).flatten(1).all(1)
    assert bool((mirrored ^ same).all())
    assert 25 <= int(mirrored.sum()) <= 80  # 50 on average; outside once in 10^5 seeds


def test_a_share_of_zero_or_one_flips_none_or_all() -> None:
    given = images()
    assert torch.equal(RandomFlip(share=0.0)(given), given)
    assert torch.equal(RandomFlip(share=1.0)(given), given.flip(-1))


def test_colours_move_by_the_equation_and_stay_in_range() -> None:
    given = images()
    torch.manual_seed(5)
    found = ColourChange(brightness=0.2, contrast=0.3)(given)
    torch.manual_seed(5)
    drawn = 2 * torch.rand(2, len(given)) - 1
    for image, result, contrast, brightness in zip(given, found, *drawn, strict=True):
        mean = image.mean()
        expected = mean + (1 + 0.3 * contrast) * (image - mean) + 0.2 * brightness
        torch.testing.assert_close(result, expected.clamp(0, 1))


def test_colours_of_bytes_change_as_those_of_floats_do() -> None:
    given = images(dtype=torch.uint8)
    torch.manual_seed(1)
    as_bytes = ColourChange()(given)
    torch.manual_seed(1)
    as_floats = ColourChange()(given / 255) * 255
    assert float((as_bytes - as_floats).abs().max()) <= 0.501


def test_a_transform_that_draws_once_per_call_is_drawn_for_each_example() -> None:
    given = torch.zeros(50, 1, 2, 2)
    found = PerExample(lambda image: image + torch.rand(()))(given)
    assert len(set(found[:, 0, 0, 0].tolist())) == 50


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: RandomCrop(0), "`padding` is 0; pass a whole number"),
        (lambda: RandomCrop(True), "`padding` is True"),
        (lambda: RandomFlip(1.5), r"`share` is 1\.5; pass a number from 0 to 1"),
        (lambda: ColourChange(brightness=-1), "`brightness` is -1"),
        (lambda: ColourChange(contrast=float("nan")), "`contrast` is nan"),
        (lambda: ColourChange(value_range=(1.0, 1.0)), "`value_range`"),
    ],
)
def test_settings_that_make_no_sense_are_refused(build: Callable[[], object], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        build()


def test_what_is_no_batch_of_images_is_refused() -> None:
    with pytest.raises(ValueError, match=r"got shape \(4, 5\); it takes \(examples, channels"):
        RandomFlip()(torch.zeros(4, 5))
    with pytest.raises(TypeError, match="got a tuple; it takes one tensor of images"):
        RandomCrop()((torch.zeros(2, 3, 4, 4),))  # type: ignore[arg-type]
