"""Locks that the kernel drops when their holder dies, on this machine or on another one.

They are `flock`s on files, as the store's claims are: nothing has to be timed, and nothing is left
behind by `kill -9`. Folders that machines share must support them, as NFS since version 4 does.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, final


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Wait for a lock and hold it during the block."""
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@final
class AppendLock:
    """The lock of optuna's journal file, which also takes away what a killed writer left.

    A line cut short, by a power cut or a full disk, would spoil the next one.

    Args:
        journal: The file.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._handle: IO[str] | None = None

    def acquire(self) -> bool:
        """Wait for the lock."""
        self._handle = self._journal.with_name(f"{self._journal.name}.lock").open("a")
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        _drop_cut_line(self._journal)
        return True

    def release(self) -> None:
        """Let go of it."""
        if self._handle is not None:
            self._handle.close()
            self._handle = None


@final
class Claims:
    """Claims of this process on trials, by name.

    Args:
        folder: Where the files are; it is made.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._held: dict[str, IO[str]] = {}

    def take(self, name: str) -> bool:
        """Take a claim; False if another process has it, or this one."""
        if name in self._held:
            return False
        handle = (self._folder / name).open("a")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.close()
            return False
        self._held[name] = handle
        return True

    def drop(self, name: str) -> None:
        """Let go of a claim; nothing of it is left."""
        handle = self._held.pop(name)
        (self._folder / name).unlink(missing_ok=True)
        handle.close()

    def drop_all(self) -> None:
        """Let go of every claim; the files stay, for whoever waits for one of them."""
        for handle in self._held.values():
            handle.close()
        self._held.clear()


def _drop_cut_line(path: Path) -> None:
    content_size = path.stat().st_size
    if not content_size:
        return
    with path.open("rb+") as file:
        file.seek(-1, os.SEEK_END)
        if file.read(1) == b"\n":
            return
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
