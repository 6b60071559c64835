"""The idx format of MNIST: a magic number, the sizes, then the bytes."""

import math
import struct

import numpy as np
from numpy.typing import NDArray

from recollect.errors import DataError

_UNSIGNED_BYTE = 0x08
_MOST_DIMENSIONS = 8


def read_idx(content: bytes, *, origin: str) -> NDArray[np.uint8]:
    """Read the bytes of an idx file of unsigned bytes.

    Args:
        content: The whole file, uncompressed.
        origin: Where it came from, for the message.

    Returns:
        A writable array with the shape the file states.

    Raises:
        DataError: It is not such a file, or shorter or longer than it states.
    """
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != _UNSIGNED_BYTE:
        raise DataError(
            f"`{origin}` begins with {content[:4].hex() or 'nothing'}, not with an idx magic "
            "number of unsigned bytes (000008..). Fetch the data set again."
        )
    header = 4 + 4 * content[3]
    shape = struct.unpack(f">{content[3]}I", content[4:header]) if len(content) >= header else (-1,)
    if content[3] > _MOST_DIMENSIONS or len(content) - header != math.prod(shape):
        raise DataError(
            f"`{origin}` states the shape {shape} but holds {len(content) - header} bytes after "
            "its header: it was cut short. Fetch the data set again."
        )
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape).copy()


def write_idx(array: NDArray[np.uint8]) -> bytes:
    """Return the idx file of an array of unsigned bytes, header included."""
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, _UNSIGNED_BYTE, array.ndim, *array.shape)
    return header + np.ascontiguousarray(array).tobytes()
