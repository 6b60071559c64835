"""Threads take turns, and nobody who waits is passed over for long."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, final

_PATIENCE: Final = 200  # looks at those who wait, each of which lets them run


@final
class Turns:
    """One thread at a time; a thread may take its turn again while it has it.

    Python's locks are not fair: a thread that learns in a loop would take its lock again before one
    that was woken by its release. So who comes back lets those go first who wait already.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._waiting: dict[int, None] = {}  # its operations are atomic, a counter's are not
        self._last: int | None = None

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for this thread's turn, and give it back after the block."""
        me = threading.get_ident()
        if self._last == me and self._waiting:
            self._let_others_go_first()
        if not self._lock.acquire(blocking=False):
            self._waiting[me] = None
            try:
                self._lock.acquire()
            finally:
                self._waiting.pop(me, None)
        try:
            self._last = me
            yield
        finally:
            self._lock.release()

    def _let_others_go_first(self) -> None:
        if self._lock._is_owned():  # type: ignore[attr-defined]  # in the middle of its own turn
            return
        for _ in range(_PATIENCE):
            if self._last != threading.get_ident() or not self._waiting:
                return
            time.sleep(0)
