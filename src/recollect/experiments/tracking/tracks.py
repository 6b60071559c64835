"""Trackers of a sweep: every run has one of each kind, fed by the events that progress is shown by.

The folder of a run holds a file `started` that says which attempt at the run its numbers are of,
and is locked by the process that writes there. A tracker may raise: its kind then gets nothing more
from this command. The runs go on, and the same command writes the rest later.
"""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from recollect.atomic_files import locked_if_free
from recollect.experiments.records.store import Store
from recollect.experiments.running.events import Event
from recollect.experiments.specs.request import Request
from recollect.experiments.tracking.kept import kept_points
from recollect.trackers import Tracker

_ENDS: Final = ("done", "failed", "pruned", "stopped", "died", "elsewhere")


@dataclass
class _Open:
    """A tracker in use, and the lock on its folder."""

    tracker: Tracker
    lock: ExitStack

    def close(self) -> None:
        try:
            self.tracker.close()
        finally:
            self.lock.close()


class Tracks:
    """Hands the points of runs to trackers.

    Args:
        kinds: Classes of trackers, by the name of the folder that each gets.
        store: Where records go; the trackers' folders are in `tracked/` there.

    Attributes:
        trouble: Kinds that raised, and what.
        untold: Runs that were done before without being tracked.
    """

    def __init__(self, kinds: Mapping[str, type[Tracker]], store: Store) -> None:
        self._kinds, self._store = dict(kinds), store
        self._open: dict[tuple[str, str], _Open | None] = {}
        self.trouble: dict[str, Exception] = {}
        self.untold = 0

    def folder(self, kind: str, request: Request) -> Path:
        """Return the folder of a tracker's run."""
        return self._store.root / "tracked" / kind / request.cell.benchmark / request.key

    def catch_up(self, requests: Iterable[Request]) -> None:
        """Write what trackers lack of runs that are done: everything may have been killed then."""
        for request in requests:
            if not self._store.is_done(request):
                continue
            kept = kept_points(self._store, request)
            if kept is None:
                self.untold += 1
                continue
            self._write(request, *kept)
            self._close(request.key)

    def note(self, event: Event) -> None:
        """Write the points that an event brings."""
        if event.points is not None and event.started_at is not None:
            self._write(event.request, event.started_at, event.points)
        if event.kind in _ENDS:
            self._close(event.request.key)
        if event.kind == "done" and not event.is_new:  # another command made it
            self.catch_up([event.request])

    def close(self) -> None:
        """Close every tracker."""
        for key in {key for _, key in self._open}:
            self._close(key)

    def _write(
        self, request: Request, started_at: str, points: Sequence[Mapping[str, Any]]
    ) -> None:
        for kind in [kind for kind in self._kinds if kind not in self.trouble]:
            try:
                tracker = self._opened(kind, request, started_at)
                if tracker is None:
                    continue
                last = tracker.last_step
                for point in points:
                    if point["step"] > last:
                        tracker.keep(point["step"], point["numbers"])
            except Exception as error:  # a user's own, or of a server that went away
                self.trouble[kind] = error

    def _opened(self, kind: str, request: Request, started_at: str) -> Tracker | None:
        """Return the tracker of a run; None if another command is writing there."""
        name = kind, request.key
        if name not in self._open:
            folder = self.folder(kind, request)
            lock = _locked(folder, started_at)
            self._open[name] = None
            if lock is not None:
                facts = _facts(request) | {"started_at": started_at}
                try:
                    self._open[name] = _Open(self._kinds[kind](folder, facts), lock)
                except BaseException:
                    lock.close()
                    raise
        found = self._open[name]
        return None if found is None else found.tracker

    def _close(self, key: str) -> None:
        for name in [name for name in self._open if name[1] == key]:
            found = self._open.pop(name)
            try:
                if found is not None:
                    found.close()
            except Exception as error:
                self.trouble.setdefault(name[0], error)


def _locked(folder: Path, started_at: str) -> ExitStack | None:
    """Take a run's folder for this process, and empty it of another attempt at the run."""
    folder.mkdir(parents=True, exist_ok=True)
    started, lock = folder / "started", ExitStack()
    try:
        is_ours = lock.enter_context(locked_if_free(started))
    except OSError:
        is_ours = False
    if not is_ours:
        lock.close()
        return None
    if started.read_text(encoding="utf-8") != started_at:
        for old in folder.iterdir():
            if old.name == "started":
                continue
            if old.is_dir():
                shutil.rmtree(old)
            else:
                old.unlink()
        started.write_text(started_at, encoding="utf-8")
    return lock


def _facts(request: Request) -> dict[str, Any]:
    """Say what is known of a run."""
    cell = request.cell
    return {
        "key": request.key,
        "benchmark": cell.benchmark,
        "protocol": cell.protocol,
        "method": cell.method,
        "capacity": cell.capacity,
        "seed": request.seed,
        "spec_hash": cell.spec_hash,
        "settings": json.loads(cell.canonical_json),
    }
