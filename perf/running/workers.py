"""Are two worker processes twice as fast as one?

The same sweep of MNIST-S into a fresh store, once with one worker and once with two, by the clock
on the wall, the two alternated. Starting workers and writing records is in it, and shown apart:
records say how long their runs took. Beside it, what the machine itself gives: bare loops that
share nothing, one alone and two at once.

    python -m perf.running.workers
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import torch

from perf.asking.answer import Answer, Table, lines_of, ratio
from perf.asking.measuring import alternate, one_thread
from perf.contestants.bare import BareJointER
from perf.contestants.filling import fill_bare
from perf.contestants.shapes import BATCH, CAPACITY, SHAPES
from recollect.experiments.records.store import read_records
from recollect.experiments.running.machine import usable_cores

_TITLES = {"one": "one worker", "two": "two workers"}
_COLUMNS = ("", "s by the clock", "of them outside runs", "s of CPU a run")
_METHODS = ("er-mir", "er-pc-mir")  # runs of some seconds, as a sweep usually has


@dataclass(frozen=True)
class Sweep:
    """What one sweep took.

    Attributes:
        seconds: Of the whole command, by the clock.
        outside: Of them, those that a worker spent outside its runs, starting up above all.
        cpu_a_run: CPU time of a run, mean.
    """

    seconds: float
    outside: float
    cpu_a_run: float


def sweep(workers: int, seeds: int, methods: tuple[str, ...] = _METHODS) -> Sweep:
    """Run one sweep and read its records."""
    with tempfile.TemporaryDirectory() as folder:
        chosen = [word for method in methods for word in ("--method", method)]
        command = [
            *(str(Path(sys.executable).parent / "recollect"), "run", "mnist-split", *chosen),
            *("--seeds", str(seeds), "--workers", str(workers), "--out", folder, "--quiet"),
        ]
        start = time.perf_counter()
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - start
        records = read_records(folder)
    in_runs = sum(record.wall_seconds for record in records) / workers
    return Sweep(seconds, seconds - in_runs, mean(record.cpu_seconds for record in records))


def bare_loops(count: int, steps: int) -> float:
    """Return the seconds that `count` processes, begun together, take for `steps` steps each."""
    command = [sys.executable, "-m", "perf.running.workers", "--loop", str(steps)]
    loops = [
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for _ in range(count)
    ]
    for loop in loops:
        assert loop.stdout is not None
        loop.stdout.readline()  # ready
    start = time.perf_counter()
    for loop in loops:
        assert loop.stdin is not None
        loop.stdin.close()
    for loop in loops:
        loop.wait()
    seconds = time.perf_counter() - start
    for loop in loops:
        assert loop.stdout is not None
        loop.stdout.close()
        if loop.returncode:
            raise subprocess.CalledProcessError(loop.returncode, command)
    return seconds


def loop(steps: int) -> None:
    """Say when ready, wait for the end of the input, then take steps of a bare loop."""
    one_thread()
    shape = SHAPES["mlp"]
    bare = BareJointER(shape.build, capacity=CAPACITY, replay=shape.replay)
    fill_bare(bare, shape)
    rng = torch.Generator().manual_seed(0)
    inputs, labels = shape.inputs(BATCH, rng), shape.labels(BATCH, rng)
    bare.observe(inputs, labels)
    print("ready", flush=True)
    sys.stdin.read()
    for _ in range(steps):
        bare.observe(inputs, labels)


def measure(*, repetitions: int = 3, seeds: int = 20, steps: int = 40_000) -> Answer:
    """Alternate sweeps with one worker and with two."""
    sweeps: dict[str, list[Sweep]] = {"one": [], "two": []}

    def swept(name: str, workers: int) -> float:
        sweeps[name].append(sweep(workers, seeds))
        return sweeps[name][-1].seconds

    times = alternate(
        {
            "one": lambda: swept("one", 1),
            "two": lambda: swept("two", 2),
            "a bare loop": lambda: bare_loops(1, steps),
            "two bare loops": lambda: bare_loops(2, steps),
        },
        repetitions,
        told="workers",
    )
    # How many times faster is the time of one over the time of two.
    speed = {"one": times["two"], "speed of two workers": times["one"]}
    # Two bare loops do twice the work of one.
    bare = {"one": times["two bare loops"]}
    bare["speed of two bare loops"] = [2 * seconds for seconds in times["a bare loop"]]
    remarks = []
    if usable_cores() < 2:
        remarks.append("This process may use one core only: two workers cannot be faster.")
    return Answer(
        title="Workers of a sweep",
        command="python -m perf.running.workers",
        settings={"runs": len(_METHODS) * seeds, "steps": steps, "repetitions": repetitions},
        unit="s by the clock",
        times={_TITLES.get(name, name): found for name, found in times.items()},
        ratios=[
            ratio("speed of two workers", "one", "sweep of MNIST-S", speed),
            ratio("speed of two bare loops", "one", "MLP", bare),
        ],
        tables=[Table("Where the time of a sweep goes, means", _COLUMNS, _rows(sweeps))],
        remarks=remarks,
    )


def _rows(sweeps: Mapping[str, Sequence[Sweep]]) -> list[list[str | float]]:
    return [
        [
            _TITLES[name],
            mean(one.seconds for one in found),
            mean(one.outside for one in found),
            mean(one.cpu_a_run for one in found),
        ]
        for name, found in sweeps.items()
    ]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repetitions", type=int, default=3)
    options.add_argument("--seeds", type=int, default=20)
    options.add_argument("--loop", type=int, metavar="STEPS", help="be a bare loop")
    chosen = options.parse_args()
    if chosen.loop:
        loop(chosen.loop)
        return
    print("\n".join(lines_of(measure(repetitions=chosen.repetitions, seeds=chosen.seeds))))


if __name__ == "__main__":
    main()
