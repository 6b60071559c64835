"""How far the runs of a command are, and how long the rest may take."""

import time
from collections.abc import Callable

from recollect.experiments.running.events import Event


class Pace:
    """Estimates the time left from what runs report.

    A run may be continued from where an earlier command left it. What that one did is done, but it
    tells nothing about how fast this one goes.

    Args:
        num_missing: Runs that the command has to make.
        clock: Returns seconds; only differences count.
    """

    def __init__(self, num_missing: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.num_missing = num_missing
        self.num_ended = self.num_failed = 0
        self.running: dict[str, Event] = {}  # the last that each told
        self._begun_at: dict[str, float] = {}  # share of each that lay behind it at first
        self._clock, self._start = clock, clock()

    @property
    def elapsed(self) -> float:
        """Seconds since the command began."""
        return self._clock() - self._start

    @property
    def share_done(self) -> float:
        """Share of all runs; one in progress counts by the share of it that is done."""
        within = sum(_share(event) for event in self.running.values())
        return (self.num_ended + within) / max(self.num_missing, 1)

    @property
    def seconds_left(self) -> float | None:
        """At the pace so far; None while it is too early to tell."""
        inherited = sum(self._begun_at.values()) / max(self.num_missing, 1)
        made_now = self.share_done - inherited
        if made_now < 0.01:
            return None
        return self.elapsed * max(0.0, 1 - self.share_done) / made_now

    def note(self, event: Event) -> None:
        """Note an event of a run."""
        key = event.request.key
        if event.kind in ("started", "progress", "elsewhere"):
            self.running[key] = event
            if event.kind == "progress":
                self._begun_at.setdefault(key, _share(event))
        elif event.kind in ("done", "failed", "pruned", "died", "stopped"):
            self.running.pop(key, None)
            self.num_ended += event.kind in ("done", "failed", "pruned")
            self.num_failed += event.kind == "failed"


def _share(event: Event) -> float:
    return event.seen / event.num_examples if event.seen and event.num_examples else 0.0
