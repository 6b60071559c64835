"""Are two worker processes twice as fast as one?

The same sweep of MNIST-S into a fresh store, once with one worker and once with two, by the clock
on the wall, the two alternated. Starting workers and writing records is in it.

    python -m perf.workers
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from perf.answer import Answer, lines_of, ratio
from perf.measuring import alternate
from recollect.experiments.machine import usable_cores

_METHODS = ("er", "er-p")


def sweep(workers: int, seeds: int, methods: tuple[str, ...] = _METHODS) -> float:
    """Return the seconds of one sweep."""
    with tempfile.TemporaryDirectory() as folder:
        chosen = [word for method in methods for word in ("--method", method)]
        command = [
            *(str(Path(sys.executable).parent / "recollect"), "run", "mnist-split", *chosen),
            *("--seeds", str(seeds), "--workers", str(workers), "--out", folder, "--quiet"),
        ]
        start = time.perf_counter()
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start


def measure(*, repetitions: int = 3, seeds: int = 8) -> Answer:
    """Alternate sweeps with one worker and with two."""
    times = alternate(
        {"one": lambda: sweep(1, seeds), "two": lambda: sweep(2, seeds)},
        repetitions,
        told="workers",
    )
    # How many times faster is the time of one over the time of two.
    speed = {"one": times["two"], "speed of two workers": times["one"]}
    remarks = []
    if usable_cores() < 2:
        remarks.append("This process may use one core only: two workers cannot be faster.")
    return Answer(
        title="Workers of a sweep",
        command="python -m perf.workers",
        settings={"runs": len(_METHODS) * seeds, "repetitions": repetitions},
        unit="s by the clock",
        times={f"{name} worker" + "s" * (name == "two"): found for name, found in times.items()},
        ratios=[ratio("speed of two workers", "one", "sweep of MNIST-S", speed)],
        remarks=remarks,
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repetitions", type=int, default=3)
    options.add_argument("--seeds", type=int, default=8)
    chosen = options.parse_args()
    print("\n".join(lines_of(measure(repetitions=chosen.repetitions, seeds=chosen.seeds))))


if __name__ == "__main__":
    main()
