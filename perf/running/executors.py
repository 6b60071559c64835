"""What it costs to make runs by our workers, by `--on dask`, and on dask workers started by hand.

For each, the same sweep of MNIST-S into a fresh store, alternated: how long until the first run
starts (the command's own imports included), and by how much a run takes longer, from one record to
the next, than its record says. Beside it, how much faster two of each are than one.

    python -m perf.running.executors
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from recollect.experiments.records.store import read_records

_NAMES = ("our workers", "--on dask", "dask workers by hand")
_ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Measured:
    """What one sweep took, in seconds.

    Attributes:
        start_up: From the command to its first run.
        per_run: What a run took beside what its record says, on each worker.
        made: From the first run's start to the last one's end.
    """

    start_up: float
    per_run: float
    made: float


@contextmanager
def dask_by_hand(workers: int) -> Iterator[str]:
    """Start a scheduler and workers as processes of their own; give the scheduler's file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scheduler.json"
        common = ["--scheduler-file", str(file), "--host", "127.0.0.1", "--no-dashboard"]
        started = [_dask("dask_scheduler", folder, *common)]
        try:
            while not file.exists():
                time.sleep(0.05)
            one = ("dask_worker", folder, *common, "--nthreads", "1")
            started += [_dask(*one) for _ in range(workers)]
            _wait_for_workers(file, workers)
            yield str(file)
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait()


def _dask(module: str, folder: str, *options: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.{module}", *options],
        cwd=folder,
        env=_ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _wait_for_workers(file: Path, workers: int) -> None:
    from distributed import Client

    with Client(scheduler_file=str(file), set_as_default=False) as client:
        client.wait_for_workers(workers)


def sweep(name: str, workers: int, methods: Sequence[str], seeds: int) -> Measured:
    """Make one sweep by one kind of executor."""
    if name == "dask workers by hand":
        with dask_by_hand(workers) as file:
            return _timed(["--on", file], workers, methods, seeds)
    on = ["--on", "dask"] if name == "--on dask" else []
    return _timed(on, workers, methods, seeds)


def _timed(on: Sequence[str], workers: int, methods: Sequence[str], seeds: int) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        chosen = [word for method in methods for word in ("--method", method)]
        command = [sys.executable, "-m", "recollect", "run", "mnist-split", *chosen, *on, "--json"]
        command += ["--seeds", str(seeds), "--workers", str(workers), "--out", folder]
        begin = time.perf_counter()
        moments: dict[str, list[float]] = {"started": [], "done": []}
        running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_ENVIRONMENT)
        assert running.stdout is not None
        for line in running.stdout:
            moments.setdefault(json.loads(line)["event"], []).append(time.perf_counter())
        if running.wait():
            raise subprocess.CalledProcessError(running.returncode, command)
        records = read_records(folder)
    first, last = moments["started"][0], moments["done"][-1]
    made, recorded = last - first, sum(record.wall_seconds for record in records)
    return Measured(first - begin, (made * workers - recorded) / len(records), made)


def measure(*, repetitions: int, seeds: int, methods: Sequence[str]) -> list[str]:
    """Alternate all executors with one worker and with two; return lines of a table."""
    found: dict[tuple[str, int], list[Measured]] = {}
    for _ in range(repetitions):
        for name in _NAMES:
            for workers in (1, 2):
                told = sweep(name, workers, methods, seeds)
                found.setdefault((name, workers), []).append(told)
                print(name, workers, told, file=sys.stderr, flush=True)
    lines = [
        "| | start-up, s | beside a run, s | one, s | two, s | two / one |",
        "|---|" + "---:|" * 5,
    ]
    for name in _NAMES:
        one, two = found[name, 1], found[name, 2]
        start_up, per_run = (
            median(getattr(m, key) for m in one) for key in ("start_up", "per_run")
        )
        speed = median(a.made / b.made for a, b in zip(one, two, strict=True))
        made = (median(m.made for m in found[name, workers]) for workers in (1, 2))
        cells = (f"{start_up:.1f}", f"{per_run:.3f}", *(f"{s:.1f}" for s in made), f"{speed:.2f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--repetitions", type=int, default=3)
    options.add_argument("--seeds", type=int, default=12, help="of each method; a minute on one")
    options.add_argument("--method", action="append", default=[])
    asked = options.parse_args()
    methods = asked.method or ["er-mir", "er-pc-mir"]
    print("\n".join(measure(repetitions=asked.repetitions, seeds=asked.seeds, methods=methods)))


if __name__ == "__main__":
    main()
