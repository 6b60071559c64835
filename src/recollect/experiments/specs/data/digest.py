"""What tells one state of somebody's files from another."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from recollect.atomic_files import require_file
from recollect.errors import DataError

_WHOLE_BYTES: Final = 4 << 30  # a few seconds; more is told by its ends
_END_BYTES: Final = 1 << 20
_CHUNK: Final = 1 << 20


def digest_of_files(files: Iterable[Path], *, root: Path) -> str:
    """Return a SHA-256 of names below `root`, sizes and contents.

    Up to 4 GiB in all, every byte counts. Of more, the first and the last MiB of each file do: a
    change that leaves names, sizes and ends alone is then not noticed.

    Raises:
        DataError: A file cannot be read, or is none.
    """
    listed = sorted((file.relative_to(root).as_posix(), file) for file in files)
    sizes = [_size(file) for _, file in listed]
    reads_all = sum(sizes) <= _WHOLE_BYTES
    running = hashlib.sha256(b"whole" if reads_all else b"ends")
    for (name, file), size in zip(listed, sizes, strict=True):
        running.update(f"\n{name}\n{size}\n".encode("utf-8", "surrogateescape"))
        with _explained(file), file.open("rb") as stream:
            if reads_all or size <= 2 * _END_BYTES:
                while piece := stream.read(_CHUNK):
                    running.update(piece)
            else:
                running.update(stream.read(_END_BYTES))
                stream.seek(-_END_BYTES, 2)
                running.update(stream.read(_END_BYTES))
    return running.hexdigest()


def _size(file: Path) -> int:
    with _explained(file):
        require_file(file)  # a named pipe would be waited for
        return file.stat().st_size


@contextmanager
def _explained(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(
            f"`{file}` cannot be read ({error.strerror}); remove or mend it."
        ) from error
