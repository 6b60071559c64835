"""Locks that the kernel drops when their holder dies, on this machine or on another one.

They are locks of `atomic_files`, as the store's claims are: nothing is timed, and nothing is left
behind by `kill -9`. Folders that machines share must support them, as NFS since version 4 does.
"""

import os
from contextlib import ExitStack
from pathlib import Path
from typing import final

from recollect.atomic_files import locked, locked_if_free


@final
class AppendLock:
    """The lock of optuna's journal file, which also takes away what a killed writer left.

    A line cut short, by a power cut or a full disk, would spoil the next one.

    Args:
        journal: The file.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._held = ExitStack()

    def acquire(self) -> bool:
        """Wait for the lock."""
        self._held.enter_context(locked(self._journal.with_name(f"{self._journal.name}.lock")))
        _drop_cut_line(self._journal)
        return True

    def release(self) -> None:
        """Let go of it."""
        self._held.close()


@final
class Claims:
    """Claims of this process on trials, by name.

    Args:
        folder: Where the files are; it is made.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._held: dict[str, ExitStack] = {}

    def take(self, name: str) -> bool:
        """Take a claim; False if another process has it, or this one."""
        if name in self._held:
            return False
        held = ExitStack()
        if not held.enter_context(locked_if_free(self._folder / name)):
            held.close()
            return False
        self._held[name] = held
        return True

    def drop(self, name: str) -> None:
        """Let go of a claim; nothing of it is left."""
        held = self._held.pop(name)
        (self._folder / name).unlink(missing_ok=True)
        held.close()

    def drop_all(self) -> None:
        """Let go of every claim; the files stay, for whoever waits for one of them."""
        for held in self._held.values():
            held.close()
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
