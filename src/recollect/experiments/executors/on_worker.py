"""What runs on the workers of a dask cluster: each makes runs in worker processes of its own.

This file travels to them as it is, by value, with the code that makes runs: they need dask, torch
and the packages that recollect depends on, and no recollect. So nothing here comes from it, but for
`child.py`, which travels likewise.
"""

import io
import os
import platform
import select
import shutil
import signal
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from distributed import Worker, WorkerPlugin, get_worker

from recollect.experiments.executors.child import Child

_TICK: Final = 0.2
_TOLD_EVERY: Final = 0.5  # seconds between the progress of one run
_LAST: Final = ("record", "stopped", "store-error")
_BYTES_PER_SECOND: Final = 1e6  # that the checkpoints of one run may take from the network


@dataclass
class Luggage:
    """What a sweep brings to each worker.

    Attributes:
        versions: Of packages and Python, which have to be the same here.
        store: Path of the store where the command runs.
        probe: Path of a file in it; a worker that reads `token` there shares the store.
        token: What stands in it.
        code: Every folder of code that runs need, packed, by its path in the store.
        embedded: The files of the data inside the package.
        threads: Torch threads of each run.
        slice_seconds: Time after which a run's checkpoint goes back, where the store is not shared.
        patience: Seconds without a word from the command after which runs stop.
        is_ours: Whether the cluster is part of the command: Ctrl-C reaches it, and is not for it.
    """

    versions: dict[str, str]
    store: str
    probe: str
    token: str
    code: dict[str, bytes]
    embedded: dict[str, bytes]
    threads: int
    slice_seconds: float
    patience: float
    is_ours: bool


class RunMaker(WorkerPlugin):
    """Makes runs on one dask worker.

    Args:
        name: Of the sweep.
        luggage: What it brings.
    """

    _state: "_State"

    def __init__(self, name: str, luggage: Luggage) -> None:
        self.name = name
        self._luggage = luggage

    def setup(self, worker: Worker) -> None:
        """Get ready on a worker, also on one that joins later."""
        self._state = _State(Path(worker.local_directory) / self.name)
        if self._luggage.is_ours and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002 - dask's signature
        """Let go of everything."""
        self.stop()
        state = self._state
        with state.lock:
            idle, state.idle = state.idle, []
        for _, child in idle:
            child.kill()
            child.close()
        shutil.rmtree(state.folder, ignore_errors=True)

    def hear(self) -> None:
        """Note that the command is still there."""
        self._state.heard_at = time.monotonic()

    def stop(self) -> None:
        """Ask every run to save its place."""
        self._state.is_stopping.set()

    def make(self, assignment: Mapping[str, Any], topic: str) -> dict[str, Any]:
        """Make a run, or the next part of it.

        Args:
            assignment: What a worker process is told, with paths in the store; `package`; and the
                `files` of the checkpoint, for a worker that does not share the store.
            topic: Where progress is told.

        Returns:
            The last message of the worker process, with the `files` of the checkpoint if the store
            is not shared; or `unfit` or `lost`, with a message.
        """
        problem = differing(self._luggage.versions)
        if problem:
            return {"kind": "unfit", "message": problem}
        if self._state.is_stopping.is_set():
            return {"kind": "stopped"}
        self.hear()
        kept = ("request", "checkpoint_share", "folder_of_command")
        told = {key: assignment[key] for key in kept}
        if self._shares_store():
            code, folder = Path(self._luggage.store), None
            told["checkpoints"] = assignment["checkpoints"]
        else:
            code, folder = self._unpacked(), self._state.room()
            told["checkpoints"] = str(folder / "checkpoint")
            size = _write(folder / "checkpoint", assignment["files"])
            told["pause_after"] = max(self._luggage.slice_seconds, size / _BYTES_PER_SECOND)
        told["parts"] = {key: str(code / path) for key, path in assignment["parts"].items()}
        told["fetches"] = True
        try:
            last = self._made(told, code / assignment["package"], topic, assignment["key"])
            if folder is not None:
                last["files"] = _read(folder / "checkpoint")
            return last
        finally:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)

    def _made(self, told: Mapping[str, Any], package: Path, topic: str, key: str) -> dict[str, Any]:
        """Have a worker process make a run; tell how it goes, and return its last message."""
        state, worker = self._state, get_worker()
        child, next_told, is_asked_to_stop = self._child(package), 0.0, False
        child.send(told)
        while True:
            if not is_asked_to_stop and (state.is_stopping.is_set() or self._is_forsaken()):
                child.stop()
                is_asked_to_stop = True
            if not select.select([child.output], [], [], _TICK)[0]:
                continue
            for message in child.read():
                if message["kind"] in _LAST:
                    self._take_back(package, child, is_over=is_asked_to_stop)
                    return message
                if message["kind"] == "progress" and not message.get("points"):
                    if time.monotonic() < next_told:
                        continue
                    next_told = time.monotonic() + _TOLD_EVERY
                worker.log_event(topic, {**message, "key": key})
            if child.has_ended:
                was_ready, ending = child.is_ready, child.close()
                if not (was_ready or ending.is_from_outside or is_asked_to_stop):
                    text = f"could not start a process ({ending.how}). It said:\n{ending.said}"
                    return {"kind": "unfit", "message": text}
                text = f"its worker ended with {ending.how}"
                return {"kind": "lost", "message": text, "said": ending.said}

    def _child(self, package: Path) -> Child:
        """Return a worker process that has imported this code, idle or new."""
        with self._state.lock:
            alike = [pair for pair in self._state.idle if pair[0] == package]
            if alike:
                self._state.idle.remove(alike[-1])
                return alike[-1][1]
        return Child(package, self._embedded(), self._luggage.threads)

    def _take_back(self, package: Path, child: Child, *, is_over: bool) -> None:
        if not is_over:
            with self._state.lock:
                self._state.idle.append((package, child))
            return
        if not child.wait(_LAST_WORDS):
            child.kill()
        child.close()

    def _is_forsaken(self) -> bool:
        """Whether the command has not been heard of for long: its runs are no one's."""
        return time.monotonic() - self._state.heard_at > self._luggage.patience

    def _shares_store(self) -> bool:
        luggage = self._luggage
        try:
            is_same = Path(luggage.probe).read_text() == luggage.token
        except OSError:
            return False
        return is_same and os.access(Path(luggage.store) / "checkpoints", os.W_OK)

    def _unpacked(self) -> Path:
        """Return a folder with all code of the sweep, as it is in the store."""
        with self._state.lock:
            folder = self._state.folder / "store"
            if not folder.exists():
                partial = Path(tempfile.mkdtemp(dir=self._state.made()))
                for where, packed in self._luggage.code.items():
                    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
                        archive.extractall(partial / where)
                partial.rename(folder)
            return folder

    def _embedded(self) -> Path:
        with self._state.lock:
            folder = self._state.folder / "embedded"
            if not folder.exists():
                partial = Path(tempfile.mkdtemp(dir=self._state.made()))
                _write(partial, self._luggage.embedded)
                partial.rename(folder)
            return folder


_LAST_WORDS: Final = 10.0  # seconds in which a process ends that has saved its place


@dataclass
class _State:
    """What a plugin has on its worker."""

    folder: Path
    lock: threading.Lock = field(default_factory=threading.Lock)
    idle: list[tuple[Path, Child]] = field(default_factory=list)
    is_stopping: threading.Event = field(default_factory=threading.Event)
    heard_at: float = field(default_factory=time.monotonic)

    def made(self) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder

    def room(self) -> Path:
        """Return an empty folder for one run."""
        return Path(tempfile.mkdtemp(dir=self.made()))


def make(name: str, assignment: Mapping[str, Any], topic: str) -> dict[str, Any]:
    """Make a run on the worker that this task is on."""
    worker = get_worker()
    maker = _maker(name, worker)
    if maker is None:
        return {"kind": "unfit", "message": "lacks what the sweep sent", "worker": worker.address}
    return {**maker.make(assignment, topic), "worker": worker.address}


async def hear(names: Iterable[str], dask_worker: Worker) -> None:
    """Note on a worker that the command is still there; `run` waits for plain functions only."""
    for name in names:
        if (maker := _maker(name, dask_worker)) is not None:
            maker.hear()


def stop(names: Iterable[str], dask_worker: Worker) -> None:
    """Ask the runs of a worker to save their place."""
    for name in names:
        if (maker := _maker(name, dask_worker)) is not None:
            maker.stop()


def _maker(name: str, worker: Worker) -> RunMaker | None:
    found: Any = worker.plugins.get(name)  # not by its class, which arrives once more per message
    return found


def installed(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of packages, "none" for those that are not installed, and of Python."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "none"
    return found


def differing(versions: Mapping[str, str]) -> str:
    """Say on a worker which versions are others than they have to be, "" if none is."""
    here = installed(key for key in versions if key != "python")
    return " and ".join(
        f"has {key} {here[key]}, where the command has {expected}"
        for key, expected in versions.items()
        if here[key] != expected
    )


def _write(folder: Path, files: Mapping[str, bytes]) -> int:
    """Write files into a folder, and count their bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return sum(map(len, files.values()))


def _read(folder: Path) -> dict[str, bytes]:
    if not folder.is_dir():
        return {}
    whole = (path for path in folder.iterdir() if path.is_file() and path.name[0] != ".")
    return {path.name: path.read_bytes() for path in whole}
