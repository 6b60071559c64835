"""Files that are there whole or not at all, and locks that end with the process that holds them.

Nothing but a regular file is opened or replaced: a pipe would block, a device never end.
"""

import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from typing_extensions import Buffer

_KINDS: Final = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
}
_KEPT_OF_NAME: Final = 48  # characters; four bytes each and the rest still make a file name


def require_file(path: Path, *, max_bytes: int | None = None) -> None:
    """Refuse what would block or never end when it is read, or is larger than its kind can be.

    Args:
        path: What is about to be opened.
        max_bytes: How large it may be.

    Raises:
        OSError: It is absent, not a regular file, or too large. `strerror` says which in words.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        code = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EINVAL
        raise OSError(code, f"it is {kind}, not a file", str(path))
    if max_bytes is not None and status.st_size > max_bytes:
        reason = f"it has {status.st_size:,} bytes; at most {max_bytes:,} are read"
        raise OSError(errno.EINVAL, reason, str(path))


@contextmanager
def replaced_whole(path: Path) -> Iterator[Path]:
    """Yield a path to write to; if the block ends well, that file becomes `path` by one rename.

    After a power cut, too, `path` holds either what it held or all of what was written. A symbolic
    link stays one: the file that it leads to is replaced.

    Raises:
        OSError: `path` is no file that can be replaced, such as a device or a folder.
    """
    if path.exists():
        require_file(path)
    target = _led_to(path)
    partial = target.with_name(f".{target.name[:_KEPT_OF_NAME]}.{os.getpid()}.partial")
    try:
        yield partial
        flush_to_disk(partial)
        partial.replace(target)
    finally:
        with suppress(OSError):  # what went wrong first is what the reader has to know
            partial.unlink(missing_ok=True)
    flush_to_disk(target.parent)  # the rename itself must survive a power cut


def write_whole(path: Path, content: Buffer) -> None:
    """Write a file by `replaced_whole`."""
    with replaced_whole(path) as partial:
        partial.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Write a text file by `replaced_whole`, or straight into a device or a pipe.

    Raises:
        OSError: It cannot be written, or `path` is a pipe that nothing reads.
    """
    content = text.encode("utf-8", "backslashreplace")  # a path that is no text may be in it
    if path.is_char_device() or path.is_fifo():
        # Without O_NONBLOCK a pipe that nothing reads would be waited for, perhaps for ever.
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        os.set_blocking(descriptor, True)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        return
    write_whole(path, content)


@contextmanager
def staged_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes `target` by rename if the block ends well.

    Call it under `locked`: what a killed earlier attempt left is removed first.

    Args:
        target: The folder that will appear whole or not at all. An old one is replaced.
    """
    staging = target.with_name(f".{target.name}.staging")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    try:
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


@contextmanager
def locked(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold a lock on a file or folder while the block runs; other processes wait.

    The kernel drops the lock when its holder dies, so a killed process never blocks the next one.

    Args:
        path: A folder, or a file, which is made if absent. Removing it would race.
        shared: Let others hold it as well, if they share it too.
    """
    with _opened(path) as handle:
        fcntl.flock(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield


@contextmanager
def locked_if_free(path: Path) -> Iterator[bool]:
    """Hold a lock as `locked` does; do not wait, but yield False if another process holds it."""
    with _opened(path) as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            yield False
            return
        yield True


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT, 0o666)
    try:
        yield handle
    finally:
        os.close(handle)


def _led_to(path: Path) -> Path:
    try:
        return path.resolve()
    except RuntimeError as error:  # how pathlib tells of links that lead in a circle
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from error


def flush_to_disk(path: Path) -> None:
    """Force a file's bytes, or a folder's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
