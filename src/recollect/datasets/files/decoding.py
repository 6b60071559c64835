"""Encoded pictures to arrays, with the damage explained and the size bounded."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from recollect.atomic_files import require_file
from recollect.errors import DataError, UnsafeFileError

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

# The largest photographs of ImageNet have about 40 million pixels; a bomb has billions.
_MAX_PIXELS = 64_000_000
# Pillow knows some fifty formats, and runs another program for some of them.
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")


def decode_picture(
    encoded: bytes | Path,
    *,
    origin: str,
    mode: str | None = "RGB",
    size: tuple[int, int] | None = None,
) -> NDArray[np.uint8]:
    """Decode a picture.

    Args:
        encoded: Its file, or the file's bytes.
        origin: Its name, for messages.
        mode: `RGB` or `L` (grey), converted to if it is another. None keeps the picture's own.
        size: (height, width) to resize to, if it is not that already; None keeps its own.

    Returns:
        Bytes of shape (3, height, width) for `RGB`, (height, width) for `L`; for None whatever
        the picture has, colours last.

    Raises:
        DataError: It is damaged or no picture.
        UnsafeFileError: It is larger than any photograph.
    """
    from PIL import Image

    with _opened(encoded, origin) as picture:
        whole = picture.convert(mode or picture.mode)
    if size is not None and whole.size != (size[1], size[0]):
        whole = whole.resize((size[1], size[0]), Image.Resampling.LANCZOS)
    pixels = np.asarray(whole, dtype=np.uint8)
    return pixels.transpose(2, 0, 1) if mode == "RGB" else pixels


def size_of_picture(file: Path, *, origin: str) -> tuple[int, int]:
    """Return the (height, width) that a picture states, without decoding it.

    Raises:
        DataError: It is no picture.
        UnsafeFileError: It is larger than any photograph.
    """
    with _opened(file, origin) as picture:
        return picture.height, picture.width


@contextmanager
def _opened(encoded: bytes | Path, origin: str) -> "Iterator[Picture]":
    """Open a picture; whatever the block raises says that it cannot be decoded."""
    from PIL import Image

    stream: IO[bytes] | Path = io.BytesIO(encoded) if isinstance(encoded, bytes) else encoded
    try:
        if isinstance(stream, Path):
            require_file(stream)
        with warnings.catch_warnings():
            # Pillow warns from a limit of its own; ours is lower, and an error.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(stream, formats=_FORMATS) as picture:
                _check_size(picture, origin)
                yield picture
    except UnsafeFileError:
        raise
    except Image.DecompressionBombError as error:  # from twice its own limit on
        raise _too_large(origin, str(error)) from error
    # A damaged or crafted picture can fail in as many ways as there are formats.
    except Exception as error:
        raise DataError(
            f"`{origin}` cannot be decoded as a picture ({error}). Get the file again."
        ) from error


def _check_size(picture: "Picture", origin: str) -> None:
    if picture.width * picture.height > _MAX_PIXELS:
        raise _too_large(origin, f"{picture.width} x {picture.height} pixels")


def _too_large(origin: str, stated: str) -> UnsafeFileError:
    return UnsafeFileError(
        f"`{origin}` says of its size: {stated}; at most {_MAX_PIXELS:,} pixels are decoded. "
        "Remove it or make it smaller."
    )
