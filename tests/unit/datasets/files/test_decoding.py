import contextlib
import os
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from recollect.datasets.files.decoding import decode_picture
from recollect.errors import DataError, UnsafeFileError


def png(width: int, height: int, content: bytes = b"") -> bytes:
    """Return a PNG that states a size, whatever its content."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    header = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", content), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize("side", [8_001, 10_000, 30_000, 2**31 - 1])
def test_a_picture_larger_than_any_photograph_is_refused_by_its_stated_size(side: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Pillow warns from 89 million pixels on
        with pytest.raises(UnsafeFileError, match=r"at most 64,000,000 pixels are decoded"):
            decode_picture(png(side, side), origin="a.png")


def test_a_picture_without_end_or_cut_short_is_refused_in_words(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.png")
    with pytest.raises(DataError, match="it is a named pipe, not a file"):
        decode_picture(tmp_path / "a.png", origin="a.png")
    with pytest.raises(DataError, match=r"`a\.png` cannot be decoded as a picture"):
        decode_picture(png(10, 10), origin="a.png")


def test_a_format_that_another_program_would_be_run_for_is_not_opened() -> None:
    postscript = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n"
    with pytest.raises(DataError, match="cannot be decoded as a picture"):
        decode_picture(postscript, origin="a.png")


@pytest.mark.parametrize("name", ["PNG", "BMP", "GIF", "TIFF", "JPEG", "WEBP"])
def test_a_damaged_picture_is_decoded_or_refused_whatever_was_damaged(
    tmp_path: Path, name: str
) -> None:
    path, draws = tmp_path / "a", np.random.default_rng(0)
    Image.fromarray(draws.integers(0, 255, (9, 7, 3), dtype=np.uint8)).save(path, name)
    whole = path.read_bytes()
    for _ in range(100):
        changed = bytearray(whole)
        for place in draws.integers(0, len(whole), 3):
            changed[place] = draws.integers(0, 256)
        with contextlib.suppress(DataError):  # and nothing else
            assert decode_picture(bytes(changed), origin="a", size=(4, 4)).shape == (3, 4, 4)
