"""Raise at every line of a piece of code, one line at a time."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import recollect

PACKAGE = str(Path(recollect.__file__).parent)
Place = tuple[str, int]


class Tracer:
    """Count the lines, or the instructions, that run in the package, and raise at one of them.

    Args:
        at: Which of them, counted from 0; None raises at none.
        instructions: Count every instruction of the interpreter instead of every line.
        everywhere: Count in torch's files and the standard library's, too.
    """

    def __init__(
        self, at: int | None = None, *, instructions: bool = False, everywhere: bool = False
    ) -> None:
        self._at, self._event = at, "opcode" if instructions else "line"
        self._everywhere = everywhere
        self.passed: list[Place] = []

    def _counts_in(self, frame: FrameType) -> bool:
        name = frame.f_code.co_filename
        return name.startswith(PACKAGE) or (self._everywhere and "/tests/" not in name)

    def _called(self, frame: FrameType, event: str, arg: Any) -> Any:  # noqa: ARG002
        if not self._counts_in(frame):
            return None
        frame.f_trace_opcodes = self._event == "opcode"
        return self._reached

    def _reached(self, frame: FrameType, event: str, arg: Any) -> Any:  # noqa: ARG002
        if event == self._event:
            self.passed.append((frame.f_code.co_filename, frame.f_lineno))
            if len(self.passed) - 1 == self._at:
                raise KeyboardInterrupt  # which also ends the tracing
        return self._reached

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Trace what is called in the block."""
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(None)

    def from_here(self) -> None:
        """Trace what is called from here on, and what is left of the calls that led here."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if self._counts_in(frame):
                frame.f_trace = self._reached
            frame = frame.f_back
        sys.settrace(self._called)

    def stop(self) -> None:
        """Trace no longer."""
        sys.settrace(None)


def every_line(action: Callable[[], object], **options: bool) -> list[int]:
    """List the events of a run that nothing interrupts, and one behind them."""
    tracer = Tracer(**options)
    with tracer.watching():
        action()
    return list(range(len(tracer.passed) + 1))


def each_line_once(action: Callable[[], object], **options: bool) -> list[int]:
    """List the first time each line of the code is reached."""
    tracer = Tracer(**options)
    with tracer.watching():
        action()
    first = {place: index for index, place in reversed(list(enumerate(tracer.passed)))}
    return sorted(first.values())


def half(of: Callable[..., list[int]], which: int) -> Callable[..., list[int]]:
    """List every second event, so that two tests share the work."""
    return lambda action, **options: of(action, **options)[which::2]
