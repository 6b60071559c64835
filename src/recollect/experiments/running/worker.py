"""A worker process: `python -m recollect.experiments.running.worker THREADS`.

Assignments come in as lines of JSON on standard input, messages go out likewise. The end of the
input means stop, whether the parent said so or died. Of the store a worker knows the folder in
which the run's checkpoint is; the record goes to the parent.
"""

import json
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Final, TextIO

import torch

from recollect.atomic_files import locked_if_free
from recollect.datasets.catalogue import data_set
from recollect.datasets.files.downloads import no_progress
from recollect.datasets.sources.listing import LISTING
from recollect.errors import DataError, StoreError
from recollect.experiments.records.columns import to_row
from recollect.experiments.records.store import lock_of, store_explained
from recollect.experiments.running.execute import Progress, Stopped, execute
from recollect.experiments.specs.cell import Cell
from recollect.experiments.specs.request import Request

_LOOK_AGAIN: Final = 0.1  # seconds
_OURS: Final = "a worker failed at what it was given; please report this:\n"


class Worker:
    """Runs what it is given, one assignment after the other.

    Args:
        out: Where messages are written.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._assignments: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._stop = threading.Event()

    def listen(self, lines: Iterable[bytes]) -> None:
        """Take assignments as they come; the end of the input stops a run in progress.

        They are read where they are carried out: nobody sees what is raised on this thread.
        """
        try:
            for line in lines:
                self._assignments.put(line)
        finally:
            self._stop.set()
            self._assignments.put(None)

    def work(self) -> None:
        """Run assignments until there will be no more."""
        self._tell("ready")
        while (assigned := self._assignments.get()) is not None and not self._stop.is_set():
            try:
                self._run(**json.loads(assigned))
            except Stopped:
                self._tell("stopped")
            except (StoreError, DataError) as error:  # data that could not be fetched
                self._tell("store-error", message=str(error))
            except Exception:  # ours to answer for, not the run's
                self._tell("store-error", message=_OURS + traceback.format_exc())

    def _run(
        self,
        request: str,
        checkpoints: str,
        checkpoint_share: float,
        parts: dict[str, str],
        pause_after: float | None = None,
        fetches: bool = False,
        folder_of_command: str | None = None,
    ) -> None:
        """Make a run.

        Args:
            request: As `Request.to_json` wrote it.
            checkpoints: The folder of its checkpoint.
            checkpoint_share: Share of the time that saving may take.
            parts: For the SHA-256 of each file that the request names, the folder it is in here.
            pause_after: Seconds after which it stops where it is saved next; None for never.
            fetches: Whether it brings data here that is not here.
            folder_of_command: Where paths of data begin, if it is another folder than here and
                this machine has it.
        """
        if folder_of_command is not None and Path(folder_of_command).is_dir():
            os.chdir(folder_of_command)
        asked = Request.from_json(request).relocated(parts)
        folder = Path(checkpoints)
        with self._alone_in(folder):
            if fetches:
                _fetch(asked.cell)
            self._tell("started")
            told: list[Progress] = []

            def tell(progress: Progress) -> None:
                told.append(progress)
                self._tell("progress", **asdict(progress))

            record = execute(
                asked,
                checkpoints=folder,
                on_progress=tell,
                on_left=lambda reason: self._tell("anew", message=reason),
                should_stop=self._stop.is_set,
                checkpoint_share=checkpoint_share,
                pause_after=pause_after,
            )
            points = [asdict(point) for progress in told for point in progress.points or ()]
            self._tell("record", record=to_row(record), points=points)

    @contextmanager
    def _alone_in(self, folder: Path) -> Iterator[None]:
        """Hold the checkpoint of a run; a process whose parent died may still be saving it."""
        with store_explained(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
        while True:
            with ExitStack() as held:
                with store_explained(folder):
                    is_alone = held.enter_context(locked_if_free(lock_of(folder)))
                if is_alone:
                    yield
                    return
            if self._stop.wait(_LOOK_AGAIN):
                raise Stopped

    def _tell(self, kind: str, **facts: object) -> None:
        try:
            self._out.write(json.dumps({"kind": kind, **facts}) + "\n")
            self._out.flush()
        except BrokenPipeError:  # the parent is gone; the end of the input will say so
            self._stop.set()


def _fetch(cell: Cell) -> None:
    """Bring the data set of a run to this machine; processes of one machine wait for the first."""
    own = cell.data.get("where") if cell.data.get("kind") == "set" else None
    for name in LISTING:
        if name not in (cell.stream.get("data"), own):
            continue
        if data_set(name).locate() is None:
            data_set(name).fetch(None, no_progress)


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
    torch.set_num_threads(int(sys.argv[1]))
    leave_out_the_compiler()
    # Events have the output to themselves: what a library prints goes with the errors.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    worker = Worker(out)
    threading.Thread(target=worker.listen, args=(sys.stdin.buffer,), daemon=True).start()
    worker.work()


if __name__ == "__main__":
    main()
