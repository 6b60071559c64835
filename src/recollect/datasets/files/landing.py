"""How files come to rest: under a lock and by one rename, so a kill leaves no half file."""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recollect.errors import DataError, DiskSpaceError


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on `path` while the block runs; other processes wait.

    The kernel drops the lock when its holder dies, so a killed process never blocks the next one.

    Args:
        path: The lock file, made if absent and left in place: removing it would race.

    Raises:
        DataError: The folder cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = path.open("a")
    except OSError as error:
        raise DataError(
            f"`{path.parent}` cannot be written ({error.strerror}). Point `RECOLLECT_DATA` at a "
            "folder that can."
        ) from error
    with handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def staged_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes `target` by rename if the block ends well.

    Call it under `locked`: what a killed earlier attempt left is removed first.

    Args:
        target: The folder that will appear whole or not at all. An old one is replaced.

    Raises:
        DiskSpaceError: The disk filled up.
    """
    staging = target.with_name(f".{target.name}.staging")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    try:
        with disk_space_explained(staging):
            yield staging
            for file in staging.rglob("*"):
                if file.is_file():
                    flush_to_disk(file)
        replaced = target.with_name(f".{target.name}.replaced")
        shutil.rmtree(replaced, ignore_errors=True)
        if target.exists():
            target.rename(replaced)
        staging.rename(target)
        shutil.rmtree(replaced, ignore_errors=True)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def flush_to_disk(path: Path) -> None:
    """Force a file's bytes to the disk, so a later rename never exposes an empty file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
