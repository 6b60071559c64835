"""A worker process: `python -m recollect.experiments.running.worker STORE SHARE THREADS`.

Requests come in as lines on standard input, events go out as lines of JSON. The end of the input
means stop, whether the parent said so or died.
"""

import json
import os
import queue
import signal
import sys
import threading
import traceback
from dataclasses import asdict
from typing import TextIO

import torch

from recollect.errors import StoreError
from recollect.experiments.records.scores import accuracy_and_forgetting
from recollect.experiments.records.store import Store
from recollect.experiments.running.events import Kind
from recollect.experiments.running.execute import Progress, Stopped, execute
from recollect.experiments.specs.request import Request
from recollect.experiments.tracking.kept import keep_points


class Worker:
    """Runs what it is given, one request after the other.

    Args:
        store: Where records go.
        checkpoint_share: Share of the time that saving may take.
        out: Where events are written.
    """

    def __init__(self, store: Store, checkpoint_share: float, out: TextIO) -> None:
        self._store, self._share, self._out = store, checkpoint_share, out
        self._requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._stop = threading.Event()

    def listen(self, lines: TextIO) -> None:
        """Take requests as they come; the end of the input stops a run in progress."""
        for line in lines:
            self._requests.put(Request.from_json(line))
        self._stop.set()
        self._requests.put(None)

    def work(self) -> None:
        """Run requests until there will be no more."""
        self._tell("ready")
        while (request := self._requests.get()) is not None and not self._stop.is_set():
            try:
                self._run(request)
            except Stopped:
                self._tell("stopped")
            except StoreError as error:
                self._tell("store-error", message=str(error))
            except Exception:  # ours to answer for, not the run's
                self._tell("store-error", message=traceback.format_exc())

    def _run(self, request: Request) -> None:
        store = self._store
        with store.claimed(request) as is_ours:
            if not is_ours:
                self._tell("elsewhere")
                return
            if store.is_done(request):
                store.forget_checkpoint(request)
                self._tell("done", is_new=False)
                return
            self._tell("started")
            told: list[Progress] = []

            def tell(progress: Progress) -> None:
                told.append(progress)
                self._tell("progress", **asdict(progress))

            record = execute(
                request,
                checkpoints=store.checkpoint_folder(request),
                on_progress=tell,
                on_left=lambda reason: self._tell("anew", message=reason),
                should_stop=self._stop.is_set,
                checkpoint_share=self._share,
            )
            if request.is_tracked:  # before the record: until then the run can be made again
                points = [asdict(point) for progress in told for point in progress.points or ()]
                keep_points(store, request, record.started_at, points)
            store.add(request, record)
            # Only now: until the record is there, the checkpoint is all there is.
            store.forget_checkpoint(request)
        if record.status in ("failed", "pruned"):
            self._tell(record.status, message=record.error)  # type: ignore[arg-type]
            return
        accuracy, forgetting = accuracy_and_forgetting(record)
        self._tell(
            "done",
            accuracy=accuracy,
            forgetting=forgetting,
            seconds=record.wall_seconds,
            is_new=True,
        )

    def _tell(self, kind: Kind, **facts: object) -> None:
        try:
            self._out.write(json.dumps({"kind": kind, **facts}) + "\n")
            self._out.flush()
        except BrokenPipeError:  # the parent is gone; the end of the input will say so
            self._stop.set()


def leave_out_the_compiler() -> None:
    """Let optimizers be built without importing torch's compiler, which takes seconds.

    Torch marks some methods of its optimizers as not to be compiled, and imports the compiler on
    their first call to do so. Where nothing is compiled, each can be its own unmarked self. A torch
    that does this otherwise is only slower.
    """
    for method in vars(torch.optim.Optimizer).values():
        marked = getattr(method, "__wrapped__", None)
        if marked is not None:
            setattr(marked, "__dynamo_disable", marked)


def main() -> None:
    """Work for the parent that started this process."""
    # Ctrl-C reaches the whole group; the parent decides and closes the input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(int(sys.argv[3]))
    leave_out_the_compiler()
    # Events have the output to themselves: what a library prints goes with the errors.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    worker = Worker(Store(sys.argv[1]), float(sys.argv[2]), out)
    threading.Thread(target=worker.listen, args=(sys.stdin,), daemon=True).start()
    worker.work()


if __name__ == "__main__":
    main()
