"""The disk that data sets lie on: locks, folders and space, with errors that say what to do."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from recollect import atomic_files
from recollect.errors import DataError, DiskSpaceError


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on `path` while the block runs; other processes wait.

    Args:
        path: The lock file, made if absent and left in place.

    Raises:
        DataError: The folder cannot be written.
    """
    with ExitStack() as held:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(atomic_files.locked(path))
        except OSError as error:
            raise DataError(
                f"`{path.parent}` cannot be written ({error.strerror}). Point `RECOLLECT_DATA` at "
                "a folder that can."
            ) from error
        yield


@contextmanager
def staged_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes `target` by rename if the block ends well.

    Raises:
        DiskSpaceError: The disk filled up.
    """
    with disk_space_explained(target.parent), atomic_files.staged_folder(target) as staging:
        yield staging


def require_space(folder: Path, num_bytes: int) -> None:
    """Refuse to start what the disk cannot hold.

    Args:
        folder: A folder on the disk in question; it may not exist yet.
        num_bytes: How much will be written.

    Raises:
        DiskSpaceError: There is less room than that.
    """
    existing = folder
    while not existing.exists():
        existing = existing.parent
    free = shutil.disk_usage(existing).free
    if free < num_bytes:
        raise DiskSpaceError(
            f"`{folder}` has {free / 1e6:,.0f} MB free and {num_bytes / 1e6:,.0f} MB are needed. "
            "Free some space, or point `RECOLLECT_DATA` at a larger disk."
        )


@contextmanager
def disk_space_explained(folder: Path) -> Iterator[None]:
    """Turn the system's 'no space left' inside the block into an error that says what to do.

    Raises:
        DiskSpaceError: The disk or the quota filled up.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise DiskSpaceError(
            f"`{folder}` ran out of space ({error.strerror}). Free some, or point "
            "`RECOLLECT_DATA` at a larger disk, then run the command again."
        ) from error
