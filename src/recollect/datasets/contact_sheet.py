"""Pictures of examples, so that a person sees what the learner will see."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

_MARGIN = 16
_GAP = 2
_GROUP_GAP = 10
_CAPTION_SIZE = 13
_PAPER = (255, 255, 255)
_INK = (32, 32, 32)
_SMALLEST_TILE = 56


def contact_sheet(groups: Sequence[tuple[str, Tensor]], *, columns: int = 16) -> "Picture":
    """Draw one captioned band of images for each group.

    Args:
        groups: Caption and images, uint8 or floats in [0, 1], of shape (n, height, width) or
            (n, 1 or 3, height, width).
        columns: How many images stand side by side; a longer group goes on below.

    Returns:
        An RGB picture. Small images are enlarged by a whole factor, so every pixel stays square.

    Raises:
        ValueError: There are no images, or they have another shape or range.
    """
    if columns < 1:
        raise ValueError(f"`columns` is {columns}; give at least 1.")
    drawable = [(caption, _as_tiles(images, caption)) for caption, images in groups if len(images)]
    if not drawable:
        raise ValueError("`groups` has no images; pass at least one group with an image.")
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(_CAPTION_SIZE)
    bands = [(caption, _band(tiles, columns)) for caption, tiles in drawable]
    caption_width = max(int(font.getlength(caption)) for caption, _band_pixels in bands)
    left = _MARGIN + caption_width + _MARGIN
    width = left + max(band.shape[1] for _caption, band in bands) + _MARGIN
    height = 2 * _MARGIN + sum(band.shape[0] for _caption, band in bands)
    height += _GROUP_GAP * (len(bands) - 1)

    sheet = Image.new("RGB", (width, height), _PAPER)
    pen = ImageDraw.Draw(sheet)
    top = _MARGIN
    for caption, band in bands:
        sheet.paste(Image.fromarray(band), (left, top))
        middle = top + band.shape[0] // 2
        pen.text((left - _MARGIN, middle), caption, fill=_INK, font=font, anchor="rm")
        top += band.shape[0] + _GROUP_GAP
    return sheet


def _as_tiles(images: Tensor, caption: str) -> NDArray[np.uint8]:
    """Return uint8 of shape (n, height, width, 3), enlarged."""
    pixels = images.detach().cpu()
    if pixels.is_floating_point():
        if not (float(pixels.min()) >= 0.0 and float(pixels.max()) <= 1.0):
            raise ValueError(
                f"`{caption}` has floats from {float(pixels.min()):.3g} to "
                f"{float(pixels.max()):.3g}; pass uint8 or floats in [0, 1]."
            )
        pixels = (pixels * 255).round().byte()
    if pixels.ndim == 3:
        pixels = pixels.unsqueeze(1)
    if pixels.ndim != 4 or pixels.shape[1] not in (1, 3):
        raise ValueError(
            f"`{caption}` has shape {tuple(images.shape)}; pass (n, height, width) or "
            "(n, 1 or 3, height, width)."
        )
    tiles = pixels.expand(-1, 3, -1, -1).permute(0, 2, 3, 1).numpy().astype(np.uint8)
    factor = max(1, -(-_SMALLEST_TILE // max(tiles.shape[1:3])))
    return tiles.repeat(factor, axis=1).repeat(factor, axis=2)


def _band(tiles: NDArray[np.uint8], columns: int) -> NDArray[np.uint8]:
    """Return the tiles in rows of `columns`, with gaps between."""
    num, height, width, _channels = tiles.shape
    columns = min(columns, num)
    rows = -(-num // columns)
    shape = (rows * (height + _GAP) - _GAP, columns * (width + _GAP) - _GAP, 3)
    band = np.empty(shape, dtype=np.uint8)
    band[:] = _PAPER
    for index, tile in enumerate(tiles):
        top, left = index // columns * (height + _GAP), index % columns * (width + _GAP)
        band[top : top + height, left : left + width] = tile
    return band
