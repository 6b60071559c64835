"""Worker processes of this machine: light, and enough where one machine is."""

import selectors
import time
from dataclasses import dataclass
from typing import final

from typing_extensions import override

from recollect.datasets.sources.layouts import embedded_folder
from recollect.errors import WorkerError
from recollect.experiments.executors.child import Child
from recollect.experiments.executors.contract import Executor, Message, Task
from recollect.experiments.records.store import Store
from recollect.experiments.running.machine import CHECKPOINT_SHARE
from recollect.experiments.running.snapshots import package_folder, part_folder

# What says that a worker has finished with its run.
_LAST = frozenset({"record", "stopped"})


@dataclass
class _Worker:
    """A worker process, the code that it imported, and what it is doing."""

    child: Child
    package: str
    task: Task | None = None


@final
class LocalWorkers(Executor):
    """Makes runs in processes of its own, each of which makes one run after the other.

    Args:
        store: Where checkpoints are kept, and the code that processes import.
        workers: Processes.
        threads: Torch threads of each.
        checkpoint_share: Share of the time that saving may take.
    """

    def __init__(
        self,
        store: Store,
        *,
        workers: int,
        threads: int = 1,
        checkpoint_share: float = CHECKPOINT_SHARE,
    ) -> None:
        self._store, self._num_workers, self._threads = store, workers, threads
        self._share = checkpoint_share
        self._workers: list[_Worker] = []
        self._selector = selectors.DefaultSelector()
        self._is_stopping = False

    @override
    def room(self) -> int:
        busy = sum(worker.task is not None for worker in self._workers)
        return 0 if self._is_stopping else self._num_workers - busy

    @override
    def submit(self, task: Task) -> None:
        worker = self._worker_for(task.snapshot.package)
        worker.task = task
        worker.child.send(
            {
                "request": task.request.to_json(),
                "checkpoints": str(self._store.checkpoint_folder(task.request).absolute()),
                "checkpoint_share": self._share,
                "parts": {
                    sha256: str(part_folder(self._store, digest).absolute())
                    for sha256, digest in task.snapshot.parts.items()
                },
            }
        )

    @override
    def poll(self, seconds: float) -> list[Message]:
        found: list[Message] = []
        for ready, _ in self._selector.select(seconds):
            worker: _Worker = ready.data
            for message in worker.child.read():
                assert worker.task is not None
                kind = message.pop("kind")
                found.append(Message(kind, worker.task.request, message))
                if kind in _LAST:
                    worker.task = None
            if worker.child.has_ended:
                found += self._reaped(worker)
        return found

    @override
    def stop(self) -> None:
        self._is_stopping = True
        for worker in self._workers:
            worker.child.stop()

    @override
    def close(self, seconds: float) -> None:
        self.stop()
        deadline = time.monotonic() + seconds
        try:
            for worker in self._workers:
                worker.child.wait(max(0.0, deadline - time.monotonic()))
        finally:  # also if Ctrl-C was pressed once more
            for worker in self._workers:
                worker.child.kill()
                worker.child.close()
            self._workers.clear()
            self._selector.close()

    def _worker_for(self, package: str) -> _Worker:
        """Return an idle worker that has imported this code, or start one."""
        idle = [worker for worker in self._workers if worker.task is None]
        alike = [worker for worker in idle if worker.package == package]
        if alike:
            return alike[-1]
        if len(self._workers) >= self._num_workers:
            self._retire(idle[0])
        child = Child(package_folder(self._store, package), embedded_folder(), self._threads)
        worker = _Worker(child, package)
        self._workers.append(worker)
        self._selector.register(child.output, selectors.EVENT_READ, worker)
        return worker

    def _retire(self, worker: _Worker) -> None:
        self._selector.unregister(worker.child.output)
        self._workers.remove(worker)
        worker.child.stop()
        worker.child.close()

    def _reaped(self, worker: _Worker) -> list[Message]:
        """Forget a worker that ended; if it had a run, say that the run is lost.

        Raises:
            WorkerError: It ended of itself before it could take a run, as all others would.
        """
        was_ready, task = worker.child.is_ready, worker.task
        self._selector.unregister(worker.child.output)
        self._workers.remove(worker)
        ending = worker.child.close()
        if task is None:
            return []
        if not (was_ready or ending.is_from_outside or self._is_stopping):
            raise WorkerError(f"a worker could not start ({ending.how}). It said:\n{ending.said}")
        message = f"its worker ended with {ending.how}"
        return [Message("lost", task.request, {"message": message, "said": ending.said})]
