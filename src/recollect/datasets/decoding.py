"""Encoded pictures to arrays, with the damage explained and the size bounded."""

import io
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from recollect.errors import DataError, UnsafeFileError

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

# The largest photographs of ImageNet have about 40 million pixels; a bomb has billions.
_MAX_PIXELS = 64_000_000


def decode_picture(
    encoded: bytes | Path,
    *,
    origin: str,
    mode: str = "RGB",
    size: tuple[int, int] | None = None,
) -> NDArray[np.uint8]:
    """Decode a picture.

    Args:
        encoded: Its file, or the file's bytes.
        origin: Its name, for messages.
        mode: `RGB` or `L` (grey), converted to if it is another.
        size: (height, width) to resize to, if it is not that already; None keeps its own.

    Returns:
        Bytes of shape (3, height, width) for `RGB`, (height, width) for `L`.

    Raises:
        DataError: It is damaged or no picture.
        UnsafeFileError: It is larger than any photograph.
    """
    from PIL import Image, UnidentifiedImageError

    stream: IO[bytes] | Path = io.BytesIO(encoded) if isinstance(encoded, bytes) else encoded
    try:
        with Image.open(stream) as picture:
            _check_size(picture, origin)
            whole = picture.convert(mode)
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, EOFError) as error:
        raise DataError(
            f"`{origin}` cannot be decoded as a picture ({error}). Get the file again."
        ) from error
    if size is not None and whole.size != (size[1], size[0]):
        whole = whole.resize((size[1], size[0]), Image.Resampling.LANCZOS)
    pixels = np.asarray(whole, dtype=np.uint8)
    return pixels.transpose(2, 0, 1) if mode == "RGB" else pixels


def _check_size(picture: "Picture", origin: str) -> None:
    if picture.width * picture.height > _MAX_PIXELS:
        raise UnsafeFileError(
            f"`{origin}` says it is {picture.width} x {picture.height} pixels; at most "
            f"{_MAX_PIXELS:,} pixels are decoded. Remove it or make it smaller."
        )
