"""Which code a run continues with: what its sweep began with, until the run is done.

sweeps/TIME-ID.json    the runs that a command began to make, and the snapshot it took for them
"""

import json
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from recollect.atomic_files import write_whole
from recollect.errors import StoreError
from recollect.experiments.executors.child import SPEAKS
from recollect.experiments.records.store import Store, store_explained
from recollect.experiments.running.machine import code
from recollect.experiments.running.snapshots import (
    Snapshot,
    about,
    check_snapshot,
    take_parts,
    take_snapshot,
)
from recollect.experiments.specs.request import Request


class CodeOfSweep:
    """The code of each run that a sweep has to make, kept in the store.

    A run that an unfinished sweep began continues with its snapshot; what else the command has to
    make is made with the same, so that its table mixes no code. If nothing was begun, or if it is
    to be fresh, the code is that of today.

    Args:
        store: Where it is kept.
        is_fresh: Whether to take the code of today whatever was begun.
        is_fed: Whether runs become known one after the other: all are made with the code that the
            first was made with, until there are no more.
    """

    def __init__(self, store: Store, *, is_fresh: bool = False, is_fed: bool = False) -> None:
        self._store, self._is_fresh, self._is_fed = store, is_fresh, is_fed
        self._snapshots: dict[str, Snapshot] = {}
        self._chosen: Snapshot | None = None  # for runs that nobody began
        #: What a person should know of it, "" if everything is made with the code of today.
        self.notice = ""

    def of(self, request: Request) -> Snapshot:
        """Return the code that makes a run."""
        return self._snapshots[request.key]

    def plan(self, missing: Sequence[Request]) -> None:
        """Say with which code runs are made.

        Raises:
            StoreError: A snapshot is gone or altered, or cannot be written.
        """
        begun = {} if self._is_fresh else _begun(missing, self._store, is_fed=self._is_fed)
        _check(begun.values(), self._store)
        self._snapshots |= {key: sweep.snapshot for key, sweep in begun.items()}
        if begun and self._chosen is None:
            self._chosen = max(begun.values(), key=lambda sweep: sweep.name).snapshot
        others = [request for request in missing if request.key not in begun]
        if others:
            chosen = self._chosen or take_snapshot(self._store, others)
            if parts := take_parts(self._store, others):
                chosen = Snapshot(chosen.package, {**chosen.parts, **parts})
            if chosen != self._chosen or not self._is_fed:
                _write(others, chosen, self._store, is_fed=self._is_fed)
            self._chosen = chosen
            self._snapshots |= {request.key: chosen for request in others}
        if begun:
            self.notice = _notice(self._snapshots.values(), self._store)

    def close(self, *, is_over: bool) -> None:
        """Forget what was noted of sweeps that have nothing left to make.

        Args:
            is_over: Whether this one has made everything.
        """
        for path in (self._store.root / "sweeps").glob("*.json"):
            sweep = _read(path)
            if sweep.is_fed:
                is_open = not (is_over and self._is_fed)
            else:
                is_open = any(_is_open(self._store, run, sweep.began_at) for run in sweep.runs)
            if not is_open:
                path.unlink(missing_ok=True)


@dataclass(frozen=True)
class _Begun:
    """What is noted of a sweep."""

    name: str
    began_at: int
    snapshot: Snapshot
    speaks: int
    runs: tuple[str, ...]
    is_fed: bool


def _begun(missing: Sequence[Request], store: Store, *, is_fed: bool) -> "dict[str, _Begun]":
    """Return the last sweep that began each run and left it open; one that is fed began all."""
    found: dict[str, _Begun] = {}
    wanted = {_name(request): request.key for request in missing}
    for path in sorted((store.root / "sweeps").glob("*.json")):
        sweep = _read(path)
        if is_fed and sweep.is_fed:
            known = [request for request in missing if _covers(sweep.snapshot, request)]
            found |= {request.key: sweep for request in known}
        for run in wanted.keys() & set(sweep.runs):
            if _is_open(store, run, sweep.began_at):
                found[wanted[run]] = sweep
    return found


def _covers(snapshot: Snapshot, request: Request) -> bool:
    """Whether a snapshot has every file that a run needs."""
    return all(part["sha256"] in snapshot.parts for part in request.cell.parts.values())


def _is_open(store: Store, run: str, began_at: int) -> bool:
    """Whether a run has neither been made nor failed since: one that failed is tried anew."""
    benchmark, _, key = run.partition("/")
    return not store.holds(benchmark, key) and store.last_failure(benchmark, key) < began_at


def _check(begun: "Iterable[_Begun]", store: Store) -> None:
    for sweep in {sweep.name: sweep for sweep in begun}.values():
        if sweep.speaks != SPEAKS:
            raise StoreError(
                f"`{store.root / 'sweeps' / sweep.name}` was begun by another version of recollect "
                f"(its workers speak {sweep.speaks}, this one {SPEAKS}). Finish it with that "
                "version, or give the command with --fresh: it begins the open runs anew."
            )
        check_snapshot(store, sweep.snapshot)


def _notice(snapshots: Iterable[Snapshot], store: Store) -> str:
    earlier = sorted({snapshot.package for snapshot in snapshots} - {code()})
    if not earlier:
        return ""
    told = ", ".join(f"{about(store, digest)['taken_at']} ({digest[:8]})" for digest in earlier)
    return (
        f"the source was edited since these runs were begun; they continue with the code of {told}."
        " --fresh takes today's and begins anew"
    )


def _write(requests: Sequence[Request], snapshot: Snapshot, store: Store, *, is_fed: bool) -> None:
    now = time.time_ns()
    content = {
        "began_at": now,
        "speaks": SPEAKS,
        "package": snapshot.package,
        "parts": dict(snapshot.parts),
        "runs": [] if is_fed else [_name(request) for request in requests],
        "is_fed": is_fed,
    }
    path = store.root / "sweeps" / f"{now}-{os.getpid()}-{uuid4().hex[:8]}.json"
    with store_explained(store.root):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(content).encode())


def _read(path: Path) -> _Begun:
    try:
        content = json.loads(path.read_bytes())
        return _Begun(
            name=path.name,
            began_at=int(content["began_at"]),
            snapshot=Snapshot(str(content["package"]), dict(content["parts"])),
            speaks=int(content["speaks"]),
            runs=tuple(content["runs"]),
            is_fed=bool(content["is_fed"]),
        )
    except FileNotFoundError:  # another command has seen that it is finished
        return _Begun(path.name, 0, Snapshot(""), SPEAKS, (), is_fed=False)
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"`{path}` is damaged ({error}); remove it: the runs it was about begin anew."
        ) from error


def _name(request: Request) -> str:
    return f"{request.cell.benchmark}/{request.key}"
