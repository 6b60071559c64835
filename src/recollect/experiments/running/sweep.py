"""Many runs on worker processes: each killed one is noticed, each lost run continued."""

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, Final

from recollect.errors import StoreError, WorkerError
from recollect.experiments.records.store import Store
from recollect.experiments.running.events import Event
from recollect.experiments.running.execute import failed_record
from recollect.experiments.running.machine import CHECKPOINT_SHARE
from recollect.experiments.specs.request import Request

_MOST_TRIES: Final = 3  # of a run whose worker dies
_LOOK_AGAIN: Final = 0.5  # seconds until a run of another command is asked about again
_TICK: Final = 0.1
_PATIENCE: Final = 60.0  # seconds a worker may take to save its place
_KEPT_BYTES: Final = 1 << 30  # freed memory that a worker keeps for its next step

OnEvent = Callable[[Event], None]
More = Callable[[], Sequence[Request] | None]


@dataclass(frozen=True)
class Outcome:
    """How a sweep ended.

    Attributes:
        num_done: Runs done now.
        num_there: Runs that were in the store already, or that another command did meanwhile.
        failed: Runs that failed.
        was_stopped: Whether it was asked to stop before all runs were done.
    """

    num_done: int
    num_there: int
    failed: tuple[Request, ...]
    was_stopped: bool


def sweep(
    requests: Sequence[Request] | More,
    store: Store,
    *,
    workers: int,
    threads: int = 1,
    on_event: OnEvent | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    on_tick: Callable[[], None] | None = None,
    checkpoint_share: float = CHECKPOINT_SHARE,
) -> Outcome:
    """Make the runs that the store does not hold, in order, on worker processes.

    Args:
        requests: What to run. Or a function that is called when a worker has nothing to do: it
            returns requests, none for the moment, or None: there will be no more.
        store: Where records go. Other commands may work on it at the same time; a run that one
            of them has in hand is waited for, and taken over should that command die.
        workers: Processes.
        threads: Torch threads of each. One is the most efficient, unless runs are fewer than cores.
        on_event: Called with each event.
        should_stop: Called about ten times a second. Once it returns True, all runs save their
            place.
        on_tick: Called about ten times a second.
        checkpoint_share: Share of the time that saving may take.

    Raises:
        StoreError: The store cannot be written to. The other runs have saved their place if they
            could.
        WorkerError: Workers cannot start.
    """
    if workers < 1:
        raise ValueError(f"`workers` is {workers}; pass at least 1.")
    if threads < 1:
        raise ValueError(f"`threads` is {threads}; pass at least 1.")
    more = requests if callable(requests) else None
    given = () if callable(requests) else requests
    missing = [request for request in given if not store.is_done(request)]
    if (
        missing or more is not None
    ):  # what is there can be shown from a disk that cannot be written to
        store.prepare()
    for request in given:
        if store.is_done(request):
            store.forget_checkpoint(request)  # of a command killed just after it was done
    state = _Sweep(
        missing,
        store,
        num_workers=workers if more is not None else min(workers, len(missing)),
        threads=threads,
        on_event=on_event or _ignore,
        share=checkpoint_share,
        more=more,
    )
    try:
        was_stopped = state.go(should_stop, on_tick or _ignore)
    except BaseException:
        state.abandon()
        raise
    return Outcome(
        num_done=state.num_done,
        num_there=len(given) - len(missing) + state.num_there,
        failed=tuple(state.failed),
        was_stopped=was_stopped,
    )


@dataclass
class _Worker:
    """A worker process and what it is doing."""

    process: "subprocess.Popen[bytes]"
    errors: IO[bytes]
    request: Request | None = None
    is_ready: bool = False
    unread: bytes = b""

    def send(self, request: Request) -> None:
        self.request = request
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(request.to_json().encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:  # it is dead; `_listen` sees the end of its output
            return

    def close_input(self) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            return

    def close(self) -> None:
        """Close the pipes and files of the process."""
        self.close_input()
        self.errors.close()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def stderr_tail(self) -> str:
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")[-2000:].strip()


class _Sweep:
    """A sweep in progress."""

    def __init__(
        self,
        missing: Sequence[Request],
        store: Store,
        *,
        num_workers: int,
        threads: int,
        on_event: OnEvent,
        share: float,
        more: More | None,
    ) -> None:
        self.more = more
        self.pending, self.store = deque(missing), store
        self.num_workers, self.threads = num_workers, threads
        self.on_event, self.share = on_event, share
        self.workers: list[_Worker] = []
        self.elsewhere: list[tuple[float, Request]] = []
        self.awaited: set[str] = set()
        self.tries: Counter[str] = Counter()
        self.failed: list[Request] = []
        self.num_done = self.num_there = 0
        self.selector = selectors.DefaultSelector()

    def go(self, should_stop: Callable[[], bool], on_tick: Callable[[], None]) -> bool:
        while self._has_work():
            if should_stop():
                self._stop(on_tick)
                self.selector.close()
                return True
            self._retry_elsewhere()
            self._assign()
            self._listen()
            on_tick()
        self._stop(on_tick)
        self.selector.close()
        return False

    def _has_work(self) -> bool:
        is_busy = any(worker.request for worker in self.workers)
        return self.more is not None or bool(self.pending or self.elsewhere or is_busy)

    def abandon(self) -> None:
        """Let every worker save its place, but do not wait for long."""
        for worker in self.workers:
            worker.close_input()
        deadline = time.monotonic() + 5
        for worker in self.workers:
            try:
                worker.process.wait(max(0.0, deadline - time.monotonic()))
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                worker.process.kill()
                worker.process.wait()
            worker.close()
        self.selector.close()

    def _stop(self, on_tick: Callable[[], None]) -> None:
        for worker in self.workers:
            worker.close_input()
        deadline = time.monotonic() + _PATIENCE
        while self.workers:
            self._listen(is_stopping=True)
            on_tick()
            if time.monotonic() > deadline:
                for worker in self.workers:
                    worker.process.kill()

    def _retry_elsewhere(self) -> None:
        """Take up runs of other commands again, once there is nothing else to do."""
        now = time.monotonic()
        if not self.pending:
            self.pending.extend(request for due, request in self.elsewhere if due <= now)
            self.elsewhere = [(due, request) for due, request in self.elsewhere if due > now]

    def _assign(self) -> None:
        idle = [worker for worker in self.workers if worker.request is None]
        self._ask_for_more(len(idle) + self.num_workers - len(self.workers))
        while self.pending and (idle or len(self.workers) < self.num_workers):
            worker = idle.pop() if idle else self._start_worker()
            worker.send(self.pending.popleft())

    def _ask_for_more(self, num_idle: int) -> None:
        while self.more is not None and len(self.pending) < num_idle:
            found = self.more()
            if found is None:
                self.more = None
            elif not found:
                return
            else:
                self.pending.extend(r for r in found if not self._is_there(r))

    def _is_there(self, request: Request) -> bool:
        if not self.store.is_done(request):
            return False
        self.num_there += 1
        self.on_event(Event("done", request, is_new=False))
        return True

    def _start_worker(self) -> _Worker:
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the worker ends
        command = [sys.executable, "-P", "-m", "recollect.experiments.running.worker"]
        process = subprocess.Popen(
            [*command, str(self.store.root), str(self.share), str(self.threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=_environment(self.threads),
        )
        worker = _Worker(process, errors)
        self.workers.append(worker)
        assert process.stdout is not None
        self.selector.register(process.stdout, selectors.EVENT_READ, worker)
        return worker

    def _listen(self, *, is_stopping: bool = False) -> None:
        for ready, _ in self.selector.select(_TICK):
            worker: _Worker = ready.data
            for message in self._messages(worker):
                self._note(worker, message)
            if worker.process.stdout is not None and worker.process.stdout.closed:
                self._reap(worker, is_stopping=is_stopping)

    def _messages(self, worker: _Worker) -> Iterator[dict[str, Any]]:
        assert worker.process.stdout is not None
        content = os.read(worker.process.stdout.fileno(), 1 << 16)
        *lines, worker.unread = (worker.unread + content).split(b"\n")
        yield from (json.loads(line) for line in lines)
        if not content:
            self.selector.unregister(worker.process.stdout)
            worker.process.stdout.close()

    def _note(self, worker: _Worker, message: dict[str, Any]) -> None:
        kind = message.pop("kind")
        if kind == "ready":
            worker.is_ready = True
            return
        request = worker.request
        assert request is not None
        if kind == "store-error":
            raise StoreError(message["message"])
        if kind not in ("started", "anew", "progress"):
            worker.request = None
        if kind == "done":
            self.num_done += message["is_new"]
            self.num_there += not message["is_new"]
        elif kind == "failed":
            self.failed.append(request)
        elif kind == "elsewhere":
            self.elsewhere.append((time.monotonic() + _LOOK_AGAIN, request))
            if request.key in self.awaited:
                return  # it is tried again and again, but reported once
            self.awaited.add(request.key)
        self.on_event(Event(kind, request, **message))

    def _reap(self, worker: _Worker, *, is_stopping: bool) -> None:
        """Forget a worker that ended. If it died during a run, queue the run again."""
        code = worker.process.wait()
        self.workers.remove(worker)
        stderr_tail = worker.stderr_tail()
        worker.close()
        request = worker.request
        if request is None or is_stopping:
            return
        if not worker.is_ready:
            raise WorkerError(f"a worker could not start ({_how(code)}). It said:\n{stderr_tail}")
        self.tries[request.key] += 1
        told = f"its worker ended with {_how(code)}"
        if self.tries[request.key] < _MOST_TRIES:
            self.pending.appendleft(request)
            self.on_event(Event("died", request, message=f"{told}; the run is continued"))
            return
        error = (
            f"{told}, {_MOST_TRIES} times. It may need more memory than there is.\n{stderr_tail}"
        )
        self.store.add(request, failed_record(request, error))
        self.failed.append(request)
        self.on_event(Event("failed", request, message=error))


def _environment(threads: int) -> dict[str, str]:
    """Return the environment of a worker.

    As many threads as asked for, before torch is imported: two busy processes whose OpenMP threads
    spin on each other are 85 times slower. And room that was freed is kept: the C library
    would give maps of large images back to the system and have them zeroed again at each step, a
    tenth of the time of PGD on mini-ImageNet.
    """
    count, kept = str(threads), str(_KEPT_BYTES)
    memory = {"MALLOC_MMAP_THRESHOLD_": kept, "MALLOC_TRIM_THRESHOLD_": kept}
    return {**memory, **os.environ, "OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count}


def _ignore(_event: Event | None = None) -> None:
    """Do nothing."""


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
