import numpy as np
import pytest
import torch

from recollect.datasets import contact_sheet


def test_every_image_of_every_group_is_on_the_sheet() -> None:
    # One colour an image: counting the colours counts the images.
    reds = torch.zeros(5, 3, 28, 28, dtype=torch.uint8)
    reds[:, 0] = torch.tensor([10, 20, 30, 40, 50]).view(5, 1, 1)
    greens = torch.zeros(2, 3, 28, 28, dtype=torch.uint8)
    greens[:, 1] = torch.tensor([10, 20]).view(2, 1, 1)
    sheet = np.asarray(contact_sheet([("reds", reds), ("greens", greens)], columns=2))
    for color in [(value, 0, 0) for value in (10, 20, 30, 40, 50)] + [(0, 10, 0), (0, 20, 0)]:
        # Twice as large either way, by a whole factor.
        assert int((sheet == color).all(axis=2).sum()) == 4 * 28 * 28


def test_grey_images_and_floats_are_drawn_alike() -> None:
    grey = torch.full((1, 60, 60), 51, dtype=torch.uint8)
    as_bytes = contact_sheet([("x", grey)])
    for same in (grey.unsqueeze(1), torch.full((1, 60, 60), 0.2)):
        assert contact_sheet([("x", same)]).tobytes() == as_bytes.tobytes()


def test_longer_groups_go_on_below() -> None:
    images = torch.zeros(6, 60, 60, dtype=torch.uint8)
    wide, tall = (
        contact_sheet([("x", images)], columns=6),
        contact_sheet([("x", images)], columns=2),
    )
    assert wide.width > tall.width
    assert wide.height < tall.height


def test_captions_are_drawn_left_of_their_images() -> None:
    images = torch.zeros(1, 60, 60, dtype=torch.uint8)
    plain = contact_sheet([("", images)])
    captioned = contact_sheet([("segment 1: cats and dogs", images)])
    assert captioned.width > plain.width + 100


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (torch.zeros(0, 28, 28), "`groups` has no images"),
        (torch.zeros(2, 784), r"`x` has shape \(2, 784\)"),
        (torch.zeros(2, 2, 28, 28), r"`x` has shape \(2, 2, 28, 28\)"),
        (torch.full((1, 28, 28), -1.0), r"`x` has floats from -1 to -1; pass uint8 or floats in"),
    ],
)
def test_what_cannot_be_drawn_is_refused(images: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        contact_sheet([("x", images)])


def test_a_sheet_needs_a_column() -> None:
    with pytest.raises(ValueError, match="`columns` is 0"):
        contact_sheet([("x", torch.zeros(1, 28, 28))], columns=0)
