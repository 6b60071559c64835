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
from recollect.experiments.events import Event
from recollect.experiments.execute import CHECKPOINT_SHARE, failed_record
from recollect.experiments.request import Request
from recollect.experiments.store import Store

_MOST_TRIES: Final = 3  # of a run whose worker dies
_LOOK_AGAIN: Final = 0.5  # seconds until a run of another command is asked about again
_TICK: Final = 0.1
_PATIENCE: Final = 60.0  # seconds a worker may take to save its place
_KEPT_BYTES: Final = 1 << 30  # freed memory that a worker keeps for its next step

OnEvent = Callable[[Event], None]


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
    requests: Sequence[Request],
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
        requests: What to run.
        store: Where records go. Other commands may work on it at the same time; a run that one
            of them has in hand is waited for, and taken over should that command die.
        workers: Processes.
        threads: Torch threads of each. One is the most efficient, unless runs are fewer than cores.
        on_event: Told what happens.
        should_stop: Asked about ten times a second; all runs then save their place.
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
    missing = [request for request in requests if not store.is_done(request)]
    if missing:  # what is there can be shown from a disk that cannot be written to
        store.prepare()
    for request in requests:
        if store.is_done(request):
            store.forget_checkpoint(request)  # of a command killed just after it was done
    state = _Sweep(
        missing,
        store,
        num_workers=min(workers, len(missing)),
        threads=threads,
        on_event=on_event or _ignore,
        share=checkpoint_share,
    )
    try:
        was_stopped = state.go(should_stop, on_tick or _ignore)
    except BaseException:
        state.abandon()
        raise
    return Outcome(
        num_done=state.num_done,
        num_there=len(requests) - len(missing) + state.num_there,
        failed=tuple(state.failed),
        was_stopped=was_stopped,
    )


@dataclass
class _Hand:
    """A worker process and what it is doing."""

    process: "subprocess.Popen[bytes]"
    errors: IO[bytes]
    request: Request | None = None
    is_ready: bool = False
    unread: bytes = b""

    def give(self, request: Request) -> None:
        self.request = request
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(request.to_json().encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:  # it is dead; the end of its output will say so
            return

    def dismiss(self) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            return

    def close(self) -> None:
        """Give back what the process took."""
        self.dismiss()
        self.errors.close()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def last_words(self) -> str:
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
    ) -> None:
        self.pending, self.store = deque(missing), store
        self.num_workers, self.threads = num_workers, threads
        self.on_event, self.share = on_event, share
        self.hands: list[_Hand] = []
        self.elsewhere: list[tuple[float, Request]] = []
        self.awaited: set[str] = set()
        self.tries: Counter[str] = Counter()
        self.failed: list[Request] = []
        self.num_done = self.num_there = 0
        self.selector = selectors.DefaultSelector()

    def go(self, should_stop: Callable[[], bool], on_tick: Callable[[], None]) -> bool:
        while self.pending or self.elsewhere or any(hand.request for hand in self.hands):
            if should_stop():
                self._stop(on_tick)
                self.selector.close()
                return True
            self._ask_again()
            self._hand_out()
            self._listen()
            on_tick()
        self._stop(on_tick)
        self.selector.close()
        return False

    def abandon(self) -> None:
        """Let every worker save its place, but do not wait for long."""
        for hand in self.hands:
            hand.dismiss()
        deadline = time.monotonic() + 5
        for hand in self.hands:
            try:
                hand.process.wait(max(0.0, deadline - time.monotonic()))
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                hand.process.kill()
                hand.process.wait()
            hand.close()
        self.selector.close()

    def _stop(self, on_tick: Callable[[], None]) -> None:
        for hand in self.hands:
            hand.dismiss()
        deadline = time.monotonic() + _PATIENCE
        while self.hands:
            self._listen(is_stopping=True)
            on_tick()
            if time.monotonic() > deadline:
                for hand in self.hands:
                    hand.process.kill()

    def _ask_again(self) -> None:
        """Take up runs of other commands again, once there is nothing else to do."""
        now = time.monotonic()
        if not self.pending:
            self.pending.extend(request for due, request in self.elsewhere if due <= now)
            self.elsewhere = [(due, request) for due, request in self.elsewhere if due > now]

    def _hand_out(self) -> None:
        idle = [hand for hand in self.hands if hand.request is None]
        while self.pending and (idle or len(self.hands) < self.num_workers):
            hand = idle.pop() if idle else self._hire()
            hand.give(self.pending.popleft())

    def _hire(self) -> _Hand:
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the worker ends
        command = [sys.executable, "-P", "-m", "recollect.experiments.worker"]
        process = subprocess.Popen(
            [*command, str(self.store.root), str(self.share), str(self.threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=_environment(self.threads),
        )
        hand = _Hand(process, errors)
        self.hands.append(hand)
        assert process.stdout is not None
        self.selector.register(process.stdout, selectors.EVENT_READ, hand)
        return hand

    def _listen(self, *, is_stopping: bool = False) -> None:
        for ready, _ in self.selector.select(_TICK):
            hand: _Hand = ready.data
            for message in self._messages(hand):
                self._note(hand, message)
            if hand.process.stdout is not None and hand.process.stdout.closed:
                self._bury(hand, is_stopping=is_stopping)

    def _messages(self, hand: _Hand) -> Iterator[dict[str, Any]]:
        assert hand.process.stdout is not None
        content = os.read(hand.process.stdout.fileno(), 1 << 16)
        *lines, hand.unread = (hand.unread + content).split(b"\n")
        yield from (json.loads(line) for line in lines)
        if not content:
            self.selector.unregister(hand.process.stdout)
            hand.process.stdout.close()

    def _note(self, hand: _Hand, message: dict[str, Any]) -> None:
        kind = message.pop("kind")
        if kind == "ready":
            hand.is_ready = True
            return
        request = hand.request
        assert request is not None
        if kind == "store-error":
            raise StoreError(message["message"])
        if kind not in ("started", "anew", "progress"):
            hand.request = None
        if kind == "done":
            self.num_done += message["is_new"]
            self.num_there += not message["is_new"]
        elif kind == "failed":
            self.failed.append(request)
        elif kind == "elsewhere":
            self.elsewhere.append((time.monotonic() + _LOOK_AGAIN, request))
            if request.key in self.awaited:
                return  # it is asked about again and again, and told once
            self.awaited.add(request.key)
        self.on_event(Event(kind, request, **message))

    def _bury(self, hand: _Hand, *, is_stopping: bool) -> None:
        """Take leave of a worker; if it died at work, see that the work is continued."""
        code = hand.process.wait()
        self.hands.remove(hand)
        last_words = hand.last_words()
        hand.close()
        request = hand.request
        if request is None or is_stopping:
            return
        if not hand.is_ready:
            raise WorkerError(f"a worker could not start ({_how(code)}). It said:\n{last_words}")
        self.tries[request.key] += 1
        told = f"its worker ended with {_how(code)}"
        if self.tries[request.key] < _MOST_TRIES:
            self.pending.appendleft(request)
            self.on_event(Event("died", request, message=f"{told}; the run is continued"))
            return
        error = f"{told}, {_MOST_TRIES} times. It may need more memory than there is.\n{last_words}"
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
    """Tell nobody."""


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
