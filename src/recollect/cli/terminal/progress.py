"""What a person or a machine sees while runs are made."""

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from typing_extensions import override

from recollect.cli.terminal.pace import Pace
from recollect.experiments.running.events import Event
from recollect.experiments.specs.request import Request

_MOST_ROWS: Final = 12
# A file gets its next lines after a minute, later after a quarter of the time so far, and never
# later than five minutes: some thirty in two hours, and none where runs end sooner.
_FIRST_LINES: Final = 60.0
_LATER_LINES: Final = 0.25
_LAST_LINES: Final = 300.0
_TROUBLE: Final = {
    "failed": "failed",
    "died": "lost a worker",
    "anew": "starts anew, its checkpoint cannot be continued",
}


class Display(ABC):
    """Shows a sweep while it goes on, inside a `with` block."""

    def __enter__(self) -> "Display":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    @abstractmethod
    def note(self, event: Event) -> None:
        """Show what happened to a run."""

    @abstractmethod
    def notice(self, text: str) -> None:
        """Say something of the sweep as a whole."""

    def tick(self) -> None:
        """Move on, about ten times a second."""
        return

    def stopping(self) -> None:
        """Say that runs are saving their place."""
        return


class QuietDisplay(Display):
    """Shows errors only."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @override
    def note(self, event: Event) -> None:
        if event.kind in _TROUBLE:
            _print_trouble(self._console, event)

    @override
    def notice(self, text: str) -> None:
        return


class JsonDisplay(Display):
    """Writes one JSON object per event."""

    @override
    def note(self, event: Event) -> None:
        print(json.dumps(event.facts()), flush=True)

    @override
    def notice(self, text: str) -> None:
        print(json.dumps({"event": "notice", "message": text}), flush=True)


class PlainDisplay(Display):
    """Writes a line for each run that ends, and now and then where long ones are; for files."""

    def __init__(self, console: Console, requests: Sequence[Request], pace: Pace) -> None:
        self._console, self._names, self._pace = console, RunNames(requests), pace
        self._next_lines = _FIRST_LINES
        self._is_stopping = False

    @override
    def note(self, event: Event) -> None:
        self._pace.note(event)
        if event.kind in _TROUBLE:
            _print_trouble(self._console, event)
        if event.kind == "done":
            of_all = f"{self._pace.num_ended}/{self._pace.num_missing}"
            self._say(f"{of_all}  {self._names.full(event.request)}{_result(event)}")
        if event.kind == "elsewhere":
            self._say(f"{self._names.full(event.request)}: another command is running it; waiting")

    @override
    def notice(self, text: str) -> None:
        self._say(text)

    @override
    def stopping(self) -> None:
        self._is_stopping = True
        self._say("stopping: each run saves its place")

    @override
    def tick(self) -> None:
        elapsed = self._pace.elapsed
        if elapsed < self._next_lines or self._is_stopping:
            return
        wait = min(max(_FIRST_LINES, elapsed * _LATER_LINES), _LAST_LINES)
        self._next_lines = elapsed + wait
        for event in list(self._pace.running.values())[:_MOST_ROWS]:
            if event.seen is not None:
                self._say(f"{self._names.full(event.request)}: {_place(event)}")
        self._say(f"{self._pace.share_done:.0%} done, {_time_left(self._pace)}")

    def _say(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)


class LiveDisplay(Display):
    """Draws runs in progress in place; for terminals."""

    def __init__(self, console: Console, requests: Sequence[Request], pace: Pace) -> None:
        self._names, self._pace = RunNames(requests), pace
        self._done: dict[str, list[float]] = {}
        self._is_stopping = False
        self._live = Live(console=console, transient=True, auto_refresh=False)

    @override
    def __enter__(self) -> "LiveDisplay":
        self._live.start()
        return self

    @override
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    @override
    def note(self, event: Event) -> None:
        self._pace.note(event)
        if event.kind in _TROUBLE:
            _print_trouble(self._live.console, event)
        if event.kind == "done" and event.accuracy is not None:
            self._done.setdefault(self._names.short(event.request), []).append(event.accuracy)

    @override
    def notice(self, text: str) -> None:
        self._live.console.print(text, highlight=False, markup=False, soft_wrap=True)

    @override
    def stopping(self) -> None:
        self._is_stopping = True

    @override
    def tick(self) -> None:
        parts: list[RenderableType] = [self._overall(), self._runs()]
        if self._done:
            parts.append(self._means())
        self._live.update(Group(*parts), refresh=True)

    def _overall(self) -> RenderableType:
        pace = self._pace
        line = Table.grid(padding=(0, 1))
        told = f"[bold]{pace.num_ended}[/bold] of {pace.num_missing} runs"
        if pace.num_failed:
            told += f", [red]{pace.num_failed} failed[/red]"
        left = "stopping: each run saves its place" if self._is_stopping else _time_left(pace)
        bar = ProgressBar(total=1.0, completed=pace.share_done, width=30)
        line.add_row(told, bar, Text(left, style="dim" if pace.seconds_left is None else ""))
        return line

    def _runs(self) -> RenderableType:
        table = Table(box=None, pad_edge=False, header_style="dim")
        for heading in ("running", "seed", "segment", "", "accuracy", "examples/s"):
            table.add_column(heading, justify="left" if heading in ("running", "") else "right")
        for event in list(self._pace.running.values())[:_MOST_ROWS]:
            name = escape(self._names.short(event.request))
            table.add_row(name, str(event.request.seed), *_cells(event))
        if not self._pace.running:
            table.add_row(Text("starting workers", style="dim"))
        return table

    def _means(self) -> RenderableType:
        parts = [
            f"{escape(name)} [bold]{sum(values) / len(values):.1%}[/bold] (n={len(values)})"
            for name, values in list(self._done.items())[:_MOST_ROWS]
        ]
        return Text.from_markup("[dim]mean accuracy so far[/dim]  " + "   ".join(parts))


class RunNames:
    """Names runs by what differs between them: the memory size only if there are several."""

    def __init__(self, requests: Sequence[Request]) -> None:
        sizes = {request.cell.capacity for request in requests if request.cell.capacity}
        self._tells_size = len(sizes) > 1

    def short(self, request: Request) -> str:
        """Name the method."""
        cell = request.cell
        return f"{cell.method}, {cell.capacity} slots" if self._tells_size else cell.method

    def full(self, request: Request) -> str:
        """Name benchmark, method and seed."""
        return f"{request.cell.benchmark} {self.short(request)} seed {request.seed}"


def display_for(
    requests: Sequence[Request], num_missing: int, *, is_quiet: bool, is_json: bool
) -> Display:
    """Choose: JSON or nothing if asked for, a live display in a terminal, else plain lines."""
    console = Console(stderr=True)
    if is_json:
        return JsonDisplay()
    if is_quiet:
        return QuietDisplay(console)
    if console.is_terminal and sys.stderr.isatty():
        return LiveDisplay(console, requests, Pace(num_missing))
    return PlainDisplay(console, requests, Pace(num_missing))


def _cells(event: Event) -> tuple[RenderableType, ...]:
    if event.kind == "elsewhere":
        return ("", Text("in another command", style="dim"))
    if event.seen is None or not event.num_examples:
        return ("", Text("starting", style="dim"))
    return (
        f"{event.segment}/{event.num_segments}",
        ProgressBar(total=event.num_examples, completed=event.seen, width=16),
        "" if event.accuracy is None else f"{event.accuracy:.1%}",
        "" if event.examples_per_second is None else f"{event.examples_per_second:,.0f}",
    )


def _place(event: Event) -> str:
    parts = [f"segment {event.segment}/{event.num_segments}"]
    if event.accuracy is not None:
        parts.append(f"accuracy {event.accuracy:.1%}")
    if event.examples_per_second is not None:
        parts.append(f"{event.examples_per_second:,.0f} examples/s")
    return ", ".join(parts)


def _time_left(pace: Pace) -> str:
    left = pace.seconds_left
    return "estimating the time left" if left is None else f"about {duration(left)} left"


def _result(event: Event) -> str:
    if event.accuracy is None or event.forgetting is None or event.seconds is None:
        return ": done by another command"
    return (
        f": accuracy {event.accuracy:.1%}, forgetting {event.forgetting:.1%}, {event.seconds:.1f} s"
    )


def _print_trouble(console: Console, event: Event) -> None:
    request, reason = event.request, (event.message or "").strip()
    last = reason.splitlines()[-1] if reason else "no reason given"
    name = f"{request.cell.benchmark} {request.cell.method} seed {request.seed}"
    told = f"{_TROUBLE[event.kind]}: {name}: {last}"
    console.print(told, style="red", highlight=False, markup=False, soft_wrap=True)


def duration(seconds: float) -> str:
    """Return a time as precisely as an estimate deserves."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
