"""Threads take turns, and nobody who waits is passed over for long."""

import threading
import time
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar, final, runtime_checkable

_PATIENCE: Final = 200  # looks at those who wait, each of which lets them run

Result = TypeVar("Result")
Given = ParamSpec("Given")


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

    @property
    def are_taken(self) -> bool:
        """Whether it is this thread's turn."""
        return self._lock._is_owned()  # type: ignore[attr-defined]

    @property
    def are_wanted(self) -> bool:
        """Whether a thread waits for its turn."""
        return bool(self._waiting)

    def run(self, action: Callable[[], Result]) -> Result:
        """Wait for this thread's turn, run `action`, and give the turn back.

        Not a `with` block: an interrupt between its lines and those that enter and leave it would
        keep the turn for ever, and all other threads waiting.
        """
        if self.are_taken:
            return action()
        me = threading.get_ident()
        if self._last == me and self._waiting:
            self._let_others_go_first()
        # Each level catches what interrupts the one inside it, on its first line or its last.
        try:
            try:
                try:
                    self._waiting[me] = None
                    self._lock.acquire()
                    self._waiting.pop(me, None)
                    self._last = me
                    return action()
                finally:
                    self._give_back(me)
            finally:
                self._give_back(me)
        finally:
            self._give_back(me)

    def _give_back(self, me: int) -> None:
        self._waiting.pop(me, None)
        if self.are_taken:
            self._lock.release()

    def _let_others_go_first(self) -> None:
        for _ in range(_PATIENCE):
            if self._last != threading.get_ident() or not self._waiting:
                return
            time.sleep(0)


@runtime_checkable
class TakesTurns(Protocol):
    """Something that threads share."""

    turns: Turns


Owner = TypeVar("Owner", bound=TakesTurns)


def in_turn(
    method: Callable[Concatenate[Owner, Given], Result],
) -> Callable[Concatenate[Owner, Given], Result]:
    """Let a method run when it is its thread's turn."""

    @wraps(method)
    def waiting(owner: Owner, /, *args: Given.args, **options: Given.kwargs) -> Result:
        call: Callable[..., Any] = method
        return owner.turns.run(partial(call, owner, *args, **options))

    return waiting
