"""A process that makes runs, as seen from outside: assignments in, messages out, a stop.

Nothing here comes from recollect: a dask worker runs these lines without having it installed.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

# Of assignments and messages: a sweep continues with workers of the code that it began with.
SPEAKS: Final = 1

_MODULE: Final = "recollect.experiments.running.worker"
_KEPT_BYTES: Final = 1 << 30  # freed memory that a worker keeps for its next step
_DASKS_OWN: Final = {"MALLOC_TRIM_THRESHOLD_": "65536"}  # what dask sets for its workers
_TAIL: Final = 2000  # characters of what a dead process said

Message = dict[str, Any]


@dataclass(frozen=True)
class Ending:
    """How a process ended.

    Attributes:
        how: In words, such as "exit code 1" or "SIGKILL".
        said: The last of what it wrote to standard error.
        is_from_outside: Whether it was killed; its code may then be as good as any.
    """

    how: str
    said: str
    is_from_outside: bool


class Child:
    """A worker process.

    Args:
        package: The folder that it imports recollect from.
        embedded: The folder of the data inside the package, which snapshots leave out.
        threads: Torch threads.
    """

    def __init__(self, package: Path, embedded: Path, threads: int) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it ends
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", _MODULE, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=_environment(os.environ, package, embedded, threads),
        )
        self._unread = b""
        self.is_ready = False
        self.has_ended = False

    @property
    def output(self) -> int:
        """The descriptor that messages come from, to wait for several processes at once."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def send(self, assignment: Mapping[str, object]) -> None:
        """Give it a run to make."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(assignment).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:  # it is dead; `read` sees the end of its output
            return

    def stop(self) -> None:
        """Ask it to save its place and end: the end of its input says so."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            return

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    def read(self) -> Iterator[Message]:
        """Wait for output and yield the messages in it; at its end `has_ended` becomes true."""
        content = os.read(self.output, 1 << 16)
        *lines, self._unread = (self._unread + content).split(b"\n")
        for line in lines:
            message: Message = json.loads(line)
            if message["kind"] == "ready":
                self.is_ready = True
            else:
                yield message
        self.has_ended = not content

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for its end; say whether it came in time."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def close(self) -> Ending:
        """Wait for its end, close its pipes, and say how that was."""
        code = self._process.wait()
        self.stop()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace")[-_TAIL:].strip()
        self._errors.close()
        return Ending(how_ended(code), said, code in (-signal.SIGKILL, -signal.SIGTERM))


def how_ended(code: int) -> str:
    """Name an exit code or a signal."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _environment(
    given: Mapping[str, str], package: Path, embedded: Path, threads: int
) -> dict[str, str]:
    """Return the environment of a worker process.

    As many threads as asked for, before torch is imported: two busy processes whose OpenMP threads
    spin on each other are 85 times slower. And room that was freed is kept: the C library
    would give maps of large images back to the system and have them zeroed again at each step, a
    tenth of the time of PGD on mini-ImageNet.
    """
    count, kept = str(threads), str(_KEPT_BYTES)
    memory = {"MALLOC_MMAP_THRESHOLD_": kept, "MALLOC_TRIM_THRESHOLD_": kept}
    users = {key: value for key, value in given.items() if _DASKS_OWN.get(key) != value}
    # Absolute: the process may be in another folder.
    path = [str(package.absolute()), *filter(None, [given.get("PYTHONPATH")])]
    ours = {
        "OMP_NUM_THREADS": count,
        "MKL_NUM_THREADS": count,
        "PYTHONPATH": os.pathsep.join(path),
        "RECOLLECT_EMBEDDED": str(embedded.absolute()),
    }
    return {**memory, **users, **ours}
