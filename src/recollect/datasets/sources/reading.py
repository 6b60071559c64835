"""Reading files that may be compressed, with a bound on what they may become."""

import gzip
import zlib
from pathlib import Path

from recollect.errors import UnsafeFileError


def read_maybe_gzipped(path: Path, *, max_bytes: int) -> bytes:
    """Return a file's bytes, unpacked if its name ends in `.gz`.

    Args:
        path: The file.
        max_bytes: How long the result may be.

    Raises:
        UnsafeFileError: It is longer, or is not the gzip file its name says.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            content = stream.read(max_bytes + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UnsafeFileError(
            f"`{path}` is not a whole gzip file ({error}). Delete it and fetch again."
        ) from error
    if len(content) > max_bytes:
        raise UnsafeFileError(
            f"`{path}` unpacks to more than the {max_bytes:,} bytes its kind may have. Delete it "
            "and fetch again."
        )
    return content
