"""A peer in a process of its environment, asked for one block of steps at a time."""

import json
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parents[2]
ENVIRONMENT = ROOT / ".venv-peers"
PYTHON = ENVIRONMENT / "bin" / "python"


class PeerError(Exception):
    """The peer could not do it; the message is its own."""


class Peer:
    """One method of one library on one shape."""

    def __init__(self, library: str, method: str, shape: str) -> None:
        if not PYTHON.exists():
            raise PeerError("the peers are not installed; `make perf-peers` installs them")
        self._process = subprocess.Popen(
            # -W: peers call what they deprecated themselves, once a step.
            [str(PYTHON), "-W", "ignore", "-m", "perf.peers.worker", library, method, shape],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            text=True,
        )
        self.version = str(self._heard()["version"])

    def begin(self, examples: int) -> None:
        """Start from nothing on a stream of so many examples."""
        self._ask(begin=examples)

    def do(self, steps: int) -> float:
        """Let it take the next steps; return their CPU seconds."""
        return float(self._ask(do=steps)["cpu"])

    def _ask(self, **words: int) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            print(json.dumps(words), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            raise PeerError("it ended without an answer") from None
        return self._heard()

    def _heard(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        heard: dict[str, Any] = (
            json.loads(line) if line else {"error": "it ended without an answer"}
        )
        if "error" in heard:
            raise PeerError(heard["error"])
        return heard

    def __enter__(self) -> "Peer":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()  # it ends when nobody asks any more
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
