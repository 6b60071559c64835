"""Runs on a dask cluster: on this machine, or wherever a scheduler has its workers."""

import logging
import queue
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, final
from uuid import uuid4

import cloudpickle  # type: ignore[import-untyped]
import dask
from distributed import Client, Future, LocalCluster
from typing_extensions import override

from recollect.atomic_files import write_whole
from recollect.datasets.sources.layouts import embedded_folder
from recollect.errors import WorkerError
from recollect.experiments.executors import child, on_worker
from recollect.experiments.executors.connecting import connected, silence_dask
from recollect.experiments.executors.contract import Executor, Message, Task
from recollect.experiments.executors.workforce import LOCAL_CLUSTER
from recollect.experiments.records.store import Store, store_explained
from recollect.experiments.running.machine import CHECKPOINT_SHARE, versions
from recollect.experiments.running.snapshots import (
    Snapshot,
    package_folder,
    packed,
    part_folder,
)
from recollect.experiments.specs.request import Request

_SLICE_SECONDS: Final = 60.0  # until a checkpoint goes back, where the store is not shared
_HEARD_EVERY: Final = 10.0  # seconds between words to the workers
_PATIENCE: Final = 90.0  # seconds that a worker goes on without one
_COUNTED_EVERY: Final = 5.0  # seconds between counts of the cluster's threads
_SILENCE: Final = 5.0  # seconds without a scheduler that are taken for its end
_LEAST_GIVEN: Final = 16  # runs given out to a cluster without workers, which may get some
_MOST_GIVEN: Final = 900  # runs given out at once; each holds one open file, its claim
_LARGE_GRAPH: Final = {"distributed.admin.large-graph-warning-threshold": "1GB"}


@final
class DaskCluster(Executor):
    """Makes runs as tasks of a dask cluster, each of whose workers has processes of its own.

    A worker that shares the store keeps checkpoints there. Where one does not, a run is made in
    slices: each task returns the checkpoint, which the store here keeps, and the next takes it
    along.

    Args:
        on: "dask" for a cluster on this machine, or the address or the file of a scheduler.
        store: Where records and checkpoints are.
        workers: Of a cluster on this machine.
        threads: Torch threads of each run.
        checkpoint_share: Share of the time that saving may take.
    """

    def __init__(
        self,
        on: str,
        store: Store,
        *,
        workers: int = 1,
        threads: int = 1,
        checkpoint_share: float = CHECKPOINT_SHARE,
    ) -> None:
        self._on, self._store, self._num_workers = on, store, workers
        self._threads, self._share = threads, checkpoint_share
        self._name = f"recollect-{uuid4().hex}"
        self._probe = store.root.absolute() / f".{self._name}"
        self._events: queue.SimpleQueue[Callable[[], list[Message]]] = queue.SimpleQueue()
        self._given: dict[str, tuple[Task, Future[Any]]] = {}
        self._started: set[str] = set()  # of the runs given out
        self._sliced: set[str] = set()  # runs of which a slice came back
        self._cluster: LocalCluster | None = None
        self._client: Client | None = None
        self._room, self._counted_at, self._heard_at = _LEAST_GIVEN, 0.0, time.monotonic()
        self._missed_at: float | None = None
        self._num_given = 0
        self._snapshots: list[Snapshot] = []  # that workers have
        self._workers: dict[str, int] = {}  # threads of each, by its address
        self._notify: Callable[[str], None] = lambda _: None
        self._has_workers = True  # as far as it was told
        self._is_stopping = False
        self._let_dask_speak: Callable[[], None] = lambda: None

    @override
    def start(self, on_notice: Callable[[str], None]) -> None:
        self._notify = on_notice
        self._let_dask_speak = silence_dask()
        if self._on == LOCAL_CLUSTER:
            self._cluster = _local_cluster(self._num_workers)
            self._client = Client(self._cluster, set_as_default=False)
        else:
            self._client = connected(self._on)
        self._refuse_other_versions()
        with store_explained(self._store.root):
            self._probe.write_text(self._name)
        with _by_value():
            self._make, self._hear = _Shipped(on_worker.make), _Shipped(on_worker.hear)
            self._ask_to_stop = _Shipped(on_worker.stop)
        self._client.subscribe_topic(self._name, self._receive)

    @override
    def room(self) -> int:
        self._count_workers()
        return 0 if self._is_stopping else self._room - len(self._given)

    @override
    def submit(self, task: Task) -> None:
        assert self._client is not None
        root, maker = self._store.root, self._maker_for(task.snapshot)
        self._num_given += 1
        assignment = {
            "key": task.request.key,
            "request": task.request.to_json(),
            "checkpoints": str(self._store.checkpoint_folder(task.request).absolute()),
            "checkpoint_share": self._share,
            "folder_of_command": str(Path.cwd()),
            "package": str(package_folder(self._store, task.snapshot.package).relative_to(root)),
            "parts": {
                sha256: str(part_folder(self._store, digest).relative_to(root))
                for sha256, digest in task.snapshot.parts.items()
            },
            "files": _files_of(self._store.checkpoint_folder(task.request)),
        }
        with dask.config.set(_LARGE_GRAPH):  # a checkpoint is megabytes, and is meant to go there
            future = self._client.submit(
                self._make,
                maker,
                assignment,
                self._name,
                key=f"{task.request.key}-{uuid4().hex}",
                pure=False,
                retries=0,
                priority=-self._num_given,
            )
        self._given[task.request.key] = task, future
        self._started.discard(task.request.key)

        def note_end(ended: Future[Any]) -> None:  # on a thread of the client
            self._events.put(lambda: self._ended(task.request, ended))

        future.add_done_callback(note_end)

    @override
    def poll(self, seconds: float) -> list[Message]:
        self._keep_in_touch()
        self._count_workers()
        found: list[Message] = []
        with suppress(queue.Empty):
            found += self._events.get(timeout=seconds)()
            while True:
                found += self._events.get_nowait()()
        return found

    @override
    def stop(self) -> None:
        self._is_stopping = True
        if self._client is None or not self._is_connected():
            return
        with suppress(OSError):
            self._client.run(self._ask_to_stop, self._makers, on_error="ignore")
            if not self._num_threads():  # nobody has begun anything, nor ever will
                for task, _ in list(self._given.values()):
                    self._events.put(partial(self._not_begun, task.request))

    @override
    def close(self, seconds: float) -> None:
        try:
            if self._given:
                self.stop()
                deadline = time.monotonic() + seconds
                with suppress(WorkerError):
                    while self._given and time.monotonic() < deadline:
                        self.poll(_HEARD_EVERY / 100)
        finally:
            self._probe.unlink(missing_ok=True)
            if self._client is not None:
                if self._is_connected():
                    for maker in self._makers:
                        with suppress(OSError, TimeoutError, ValueError):
                            self._client.unregister_worker_plugin(maker)
                self._client.close(timeout=seconds)
            if self._cluster is not None:
                self._cluster.close(timeout=seconds)
            self._let_dask_speak()

    # --- the cluster ------------------------------------------------------------------------------

    def _refuse_other_versions(self) -> None:
        """Refuse a cluster with workers that would make other numbers.

        Raises:
            WorkerError: One has another torch, numpy or Python.
        """
        assert self._client is not None
        with _by_value():
            found = self._client.run(_Shipped(on_worker.differing), _versions(), on_error="return")
        problems = [f"  {worker} {told}" for worker, told in found.items() if told]
        if problems:
            raise WorkerError(
                "these dask workers would make other numbers; install the same versions there:\n"
                + "\n".join(sorted(problems))
            )

    def _maker_for(self, snapshot: Snapshot) -> str:
        """Bring code to all workers, present and future; return what makes runs with it there."""
        assert self._client is not None
        if snapshot not in self._snapshots:
            self._snapshots.append(snapshot)
            name = f"{self._name}-{len(self._snapshots)}"
            with _by_value():
                maker = on_worker.RunMaker(name, self._luggage(snapshot))
                self._client.register_plugin(maker, name=name)
        return f"{self._name}-{self._snapshots.index(snapshot) + 1}"

    @property
    def _makers(self) -> list[str]:
        return [f"{self._name}-{number + 1}" for number in range(len(self._snapshots))]

    def _luggage(self, snapshot: Snapshot) -> on_worker.Luggage:
        root = self._store.root
        folders = {package_folder(self._store, snapshot.package)}
        folders |= {part_folder(self._store, digest) for digest in snapshot.parts.values()}
        return on_worker.Luggage(
            versions=_versions(),
            store=str(root.absolute()),
            probe=str(self._probe),
            token=self._name,
            code={str(folder.relative_to(root)): packed(folder) for folder in sorted(folders)},
            embedded=_files_of(embedded_folder()),
            threads=self._threads,
            slice_seconds=_SLICE_SECONDS,
            patience=_PATIENCE,
            is_ours=self._cluster is not None,
        )

    def _is_connected(self) -> bool:
        return self._client is not None and self._client.status == "running"

    def _num_threads(self) -> int:
        assert self._client is not None
        with suppress(OSError):
            self._workers = dict(self._client.nthreads())
        return sum(self._workers.values())

    def _count_workers(self) -> None:
        """See how many runs the cluster takes, and say so when nobody is there to make them."""
        now = time.monotonic()
        if now - self._counted_at <= _COUNTED_EVERY or not self._is_connected():
            return
        self._counted_at = now
        threads = self._num_threads()
        # A few more than there are threads, so that no worker waits for the next.
        self._room = min(max(_LEAST_GIVEN, threads + len(self._workers)), _MOST_GIVEN)
        if not threads and self._has_workers:
            self._notify(
                f"the dask scheduler at `{self._on}` has no workers; runs wait until there are some"
            )
        self._has_workers = threads > 0

    def _keep_in_touch(self) -> None:
        """Tell workers that the command is there, and notice when the scheduler no longer is.

        Raises:
            WorkerError: It is gone.
        """
        now = time.monotonic()
        if not self._is_connected():
            self._missed_at = self._missed_at or now
            if now - self._missed_at > _SILENCE:
                raise self._gone()
            return
        self._missed_at = None
        if now - self._heard_at > _HEARD_EVERY:
            self._heard_at = now
            assert self._client is not None
            with suppress(OSError):
                self._client.run(self._hear, self._makers, wait=False, on_error="ignore")

    def _gone(self) -> WorkerError:
        return WorkerError(
            f"the dask scheduler at `{self._on}` is gone. Finished runs are in the store, and the "
            "others are where they were saved last: once there is a scheduler, the same command "
            "continues."
        )

    # --- what comes back --------------------------------------------------------------------------

    def _receive(self, event: tuple[float, dict[str, Any]]) -> None:
        """Take an event from a worker, on the thread of the client."""
        message = dict(event[1])
        self._events.put(lambda: self._told(**message))

    def _told(self, kind: Any, key: str, worker: str = "", **facts: Any) -> list[Message]:
        """Pass an event on; a run that starts once more has lost its worker."""
        if key not in self._given:
            return []
        asked = self._given[key][0].request
        if kind != "started":
            return [Message(kind, asked, facts)]
        if key in self._sliced and key not in self._started:  # its next slice: nothing new
            self._started.add(key)
            return []
        again = key in self._started
        self._started.add(key)
        moved = {"message": f"its dask worker is gone; the run is continued on {worker}"}
        return [Message("moved", asked, moved)] * again + [Message(kind, asked, facts)]

    def _ended(self, request: Request, future: Future[Any]) -> list[Message]:
        """Say how a task ended.

        Raises:
            WorkerError: The scheduler is gone, or the worker cannot make runs.
        """
        if self._given.get(request.key, (None, None))[1] is not future:
            return []
        if future.status != "finished":
            return self._failed(request, future)
        made = future.result()
        worker, kind = made.pop("worker"), made.pop("kind")
        files = made.pop("files", None)
        if kind == "unfit":
            raise WorkerError(f"the dask worker {worker} {made['message']}")
        if files and kind in ("stopped", "lost"):
            self._keep_checkpoint(request, files)
            self._sliced.add(request.key)
        return [self._over(kind, request, **made)]

    def _failed(self, request: Request, future: Future[Any]) -> list[Message]:
        if future.status == "cancelled" or not self._is_connected():
            raise self._gone()
        error = future.exception()
        if type(error).__name__ == "KilledWorker":
            told = f"its dask workers died ({error})"
            return [self._over("lost", request, message=told, is_final=True)]
        raise WorkerError(f"a dask task failed: {type(error).__name__}: {error}") from error

    def _not_begun(self, request: Request) -> list[Message]:
        return [self._over("stopped", request)] if request.key in self._given else []

    def _over(self, kind: Any, request: Request, **facts: Any) -> Message:
        self._given.pop(request.key, None)
        return Message(kind, request, facts)

    def _keep_checkpoint(self, request: Request, files: dict[str, bytes]) -> None:
        """Put a checkpoint into the store, the file that names the others last."""
        folder = self._store.checkpoint_folder(request)
        with store_explained(self._store.root):
            folder.mkdir(parents=True, exist_ok=True)
            for name in sorted(files, key=lambda name: name.endswith(".json")):
                write_whole(folder / name, files[name])
            for path in folder.iterdir():
                if path.name not in files:
                    path.unlink(missing_ok=True)


def _local_cluster(workers: int) -> LocalCluster:
    """Return a cluster on this machine, which listens to this machine only.

    Raises:
        WorkerError: It cannot start.
    """
    try:
        return LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            memory_limit=0,  # runs are in processes of their own
            silence_logs=logging.CRITICAL,
        )
    except (OSError, RuntimeError, TimeoutError) as error:
        raise WorkerError(f"a local dask cluster could not start ({error}).") from error


class _Shipped:
    """A function of ours that arrives as itself where recollect is not installed."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function, self._content = function, cloudpickle.dumps(function)

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        return self._function(*arguments, **more)

    def __reduce__(self) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        return cloudpickle.loads, (self._content,)


@contextmanager
def _by_value() -> Iterator[None]:
    """Pickle what workers run with its source, and not by its name."""
    for module in (child, on_worker):
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in (child, on_worker):
            cloudpickle.unregister_pickle_by_value(module)


def _versions() -> dict[str, str]:
    """Return what has to be the same on workers: our own code travels to them."""
    return {name: found for name, found in versions().items() if name != "recollect"}


def _files_of(folder: Path) -> dict[str, bytes]:
    if not folder.is_dir():
        return {}
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
