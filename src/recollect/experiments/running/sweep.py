"""Many runs, made by worker processes or a cluster: each lost one is noticed and continued."""

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from recollect.errors import StoreError
from recollect.experiments.executors.choice import executor_for
from recollect.experiments.executors.contract import Executor, Message, Task
from recollect.experiments.executors.workforce import Workforce
from recollect.experiments.records.columns import from_row
from recollect.experiments.records.record import Record
from recollect.experiments.records.scores import accuracy_and_forgetting
from recollect.experiments.records.store import Store
from recollect.experiments.running.begun import CodeOfSweep
from recollect.experiments.running.events import Event
from recollect.experiments.running.execute import failed_record
from recollect.experiments.running.fresh import set_other_code_aside
from recollect.experiments.specs.request import Request
from recollect.experiments.tracking.kept import keep_points

_MOST_TRIES: Final = 3  # of a run whose worker dies
_LOOK_AGAIN: Final = 0.5  # seconds until a run of another command is asked about again
_TICK: Final = 0.1
_PATIENCE: Final = 60.0  # seconds a worker may take to save its place
_SHORT_PATIENCE: Final = 5.0  # once something went wrong

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
    workforce: Workforce,
    *,
    is_fresh: bool = False,
    on_event: OnEvent | None = None,
    on_notice: Callable[[str], None] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    on_tick: Callable[[], None] | None = None,
) -> Outcome:
    """Make the runs that the store does not hold, in order, several at a time.

    All runs are made with the code of today, of which the store keeps a copy, or with the code that
    an unfinished sweep began them with.

    Args:
        requests: What to run. Or a function that is called when a worker has nothing to do: it
            returns requests, none for the moment, or None: there will be no more.
        store: Where records go. Other commands may work on it at the same time; a run that one
            of them has in hand is waited for, and taken over should that command die.
        workforce: Who makes them.
        is_fresh: Begin what is not done anew with the code of today, and make again what other code
            made; its records are set aside.
        on_event: Called with each event.
        on_notice: Called with what a person should know of the code and of the workers.
        should_stop: Called about ten times a second. Once it returns True, all runs save their
            place.
        on_tick: Called about ten times a second.

    Raises:
        StoreError: The store cannot be written to. The other runs have saved their place if they
            could.
        WorkerError: Workers cannot start, or the cluster is gone.
        MissingExtraError: A cluster is asked for, and distributed is not installed.
    """
    notices = on_notice or _ignore
    more = requests if callable(requests) else None
    given = () if callable(requests) else requests
    if is_fresh and (num_aside := set_other_code_aside(given, store)):
        runs = "run of other code is" if num_aside == 1 else "runs of other code are"
        notices(f"{num_aside} finished {runs} set aside in {store.root / 'set-aside'}")
    missing = [request for request in given if not store.is_done(request)]
    has_work = bool(missing) or more is not None
    executor = executor_for(workforce, store, num_runs=len(missing) if more is None else None)
    if has_work:  # what is there can be shown from a disk that cannot be written to
        store.prepare()
    for request in given:
        if store.is_done(request):
            store.forget_checkpoint(request)  # of a command killed just after it was done
    code = CodeOfSweep(store, is_fresh=is_fresh, is_fed=more is not None)
    code.plan(missing)
    if code.notice:
        notices(code.notice)
    state = _Sweep(missing, store, code, executor, on_event or _ignore, more)
    try:
        was_stopped = state.go(should_stop, on_tick or _ignore, notices)
    except BaseException:
        state.close(_SHORT_PATIENCE)
        raise
    state.close(_SHORT_PATIENCE)
    if has_work:
        code.close(is_over=not was_stopped)
    return Outcome(
        num_done=state.num_done,
        num_there=len(given) - len(missing) + state.num_there,
        failed=tuple(state.failed),
        was_stopped=was_stopped,
    )


class _Sweep:
    """A sweep in progress."""

    def __init__(
        self,
        missing: Sequence[Request],
        store: Store,
        code: CodeOfSweep,
        executor: Executor,
        on_event: OnEvent,
        more: More | None,
    ) -> None:
        self.pending, self.store, self.code, self.more = deque(missing), store, code, more
        self.executor, self.on_event = executor, on_event
        self.given_out: dict[str, ExitStack] = {}  # runs under way, with the claims on them
        self.elsewhere: list[tuple[float, Request]] = []
        self.awaited: set[str] = set()
        self.tries: Counter[str] = Counter()
        self.failed: list[Request] = []
        self.num_done = self.num_there = 0
        self.is_stopping = False

    def go(
        self,
        should_stop: Callable[[], bool],
        on_tick: Callable[[], None],
        on_notice: Callable[[str], None],
    ) -> bool:
        if self._has_work():
            self.executor.start(on_notice)
        while self._has_work():
            if should_stop():
                self._stop(on_tick)
                return True
            self._retry_elsewhere()
            self._give_out()
            self._listen()
            on_tick()
        return False

    def _has_work(self) -> bool:
        return self.more is not None or bool(self.pending or self.elsewhere or self.given_out)

    def close(self, seconds: float) -> None:
        """Let runs under way save their place, but do not wait for long."""
        try:
            self.executor.close(seconds)
        finally:
            for claim in self.given_out.values():
                claim.close()
            self.given_out.clear()

    def _stop(self, on_tick: Callable[[], None]) -> None:
        self.is_stopping = True
        self.executor.stop()
        deadline = time.monotonic() + _PATIENCE
        while self.given_out and time.monotonic() < deadline:
            self._listen()
            on_tick()

    def _retry_elsewhere(self) -> None:
        """Take up runs of other commands again, once there is nothing else to do."""
        now = time.monotonic()
        if not self.pending:
            self.pending.extend(request for due, request in self.elsewhere if due <= now)
            self.elsewhere = [(due, request) for due, request in self.elsewhere if due > now]

    def _give_out(self) -> None:
        self._ask_for_more()
        while self.pending and self.executor.room() > 0:
            request, claim = self.pending.popleft(), ExitStack()
            if not claim.enter_context(self.store.claimed(request)):
                self._wait_for(request)
            elif self.store.is_done(request):
                self.store.forget_checkpoint(request)
                claim.close()
                self._note_there(request)
            else:
                self.given_out[request.key] = claim
                self.executor.submit(Task(request, self.code.of(request)))

    def _ask_for_more(self) -> None:
        while self.more is not None and len(self.pending) < self.executor.room():
            found = self.more()
            if found is None:
                self.more = None
            elif not found:
                return
            else:
                missing = [request for request in found if not self.store.is_done(request)]
                for request in found:
                    if request not in missing:
                        self._note_there(request)
                self.code.plan(missing)
                self.pending.extend(missing)

    def _note_there(self, request: Request) -> None:
        self.num_there += 1
        self.on_event(Event("done", request, is_new=False))

    def _wait_for(self, request: Request) -> None:
        self.elsewhere.append((time.monotonic() + _LOOK_AGAIN, request))
        if request.key not in self.awaited:  # it is tried again and again, but reported once
            self.awaited.add(request.key)
            self.on_event(Event("elsewhere", request))

    def _listen(self) -> None:
        for message in self.executor.poll(_TICK):
            self._note(message)

    def _note(self, message: Message) -> None:
        request, facts = message.request, message.facts
        if message.kind == "store-error":
            raise StoreError(facts["message"])
        if message.kind == "record":
            record = _record(request, facts["record"])
            if request.is_tracked:  # before the record: until then the run can be made again
                keep_points(self.store, request, record.started_at, facts["points"])
            self._keep(request, record)
        elif message.kind == "stopped":
            self._take_back(request)
            if self.is_stopping:
                self.on_event(Event("stopped", request))
            else:
                self.pending.appendleft(request)
        elif message.kind == "lost":
            self._note_loss(request, **facts)
        elif message.kind == "moved":
            self.on_event(Event("died", request, message=facts["message"]))
        else:
            self.on_event(Event(message.kind, request, **facts))

    def _keep(self, request: Request, record: Record) -> None:
        """Write a record; only then is the checkpoint no longer all there is."""
        self.store.add(request, record)
        self.store.forget_checkpoint(request)
        self._take_back(request)
        if record.status == "failed":
            self.failed.append(request)
        if record.status != "done":
            kind: Literal["failed", "pruned"] = "failed" if record.status == "failed" else "pruned"
            self.on_event(Event(kind, request, message=record.error))
            return
        self.num_done += 1
        accuracy, forgetting = accuracy_and_forgetting(record)
        self.on_event(
            Event(
                "done",
                request,
                accuracy=accuracy,
                forgetting=forgetting,
                seconds=record.wall_seconds,
                is_new=True,
            )
        )

    def _note_loss(
        self, request: Request, *, message: str, said: str = "", is_final: bool = False
    ) -> None:
        """Queue a run again whose worker died, unless it did so too often."""
        if self.is_stopping:
            self._take_back(request)
            return
        self.tries[request.key] += 1
        if self.tries[request.key] < _MOST_TRIES and not is_final:
            self._take_back(request)
            self.pending.appendleft(request)
            self.on_event(Event("died", request, message=f"{message}; the run is continued"))
            return
        times = "" if is_final else f", {_MOST_TRIES} times"
        error = f"{message}{times}. It may need more memory than there is.\n{said}"
        self._keep(request, failed_record(request, error))

    def _take_back(self, request: Request) -> None:
        self.given_out.pop(request.key).close()


def _record(request: Request, row: dict[str, Any]) -> Record:
    """Return the record of a row from a worker, to whom files of the user were elsewhere."""
    found = from_row(row)
    assert (found.spec_hash, found.seed) == (request.cell.spec_hash, request.seed)
    return replace(found, spec=request.cell.canonical_json, command=request.command)


def _ignore(_told: object = None) -> None:
    """Do nothing."""
