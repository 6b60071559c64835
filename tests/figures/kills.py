"""Kill a run again and again: `python -m tests.figures.kills 49`.

Each round starts the worker of a run, kills it with SIGKILL at a random moment, and begins again;
when a run ends, its record must be that of a run never disturbed. Prints how many kills there were
and how many of the runs' continuations were real, from a checkpoint in mid-stream.
"""

import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from recollect.experiments.records.compare_records import without_times
from recollect.experiments.records.store import Store
from recollect.experiments.running.execute import execute
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.request import requests
from recollect.experiments.specs.spec import load_spec

# Half of the time goes into saving, so that a kill often falls into it.
SHARE = 1.0
MOST_AT_ONE_RUN = 6  # then it is left to end

SPEC = """
benchmark = "mnist-split"
memory = [100]
[stream]
examples_per_segment = 300
validation_per_segment = 20
[evaluation]
on = "validation"
[methods.er-pc-mir]
"""


def main(num_kills: int) -> None:
    """Kill, continue and compare.

    Raises:
        AssertionError: A record is another one than that of a run never disturbed.
    """
    moments = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        spec, store = Path(folder) / "spec.toml", Store(Path(folder) / "store")
        spec.write_text(SPEC)
        killed = resumed = runs = 0
        while killed < num_kills:
            (request,) = requests(cells(load_spec(spec)), range(runs, runs + 1))
            longest = 4.0
            for _ in range(MOST_AT_ONE_RUN):
                command = start(spec, store, runs)
                try:
                    command.wait(timeout=moments.uniform(1.0, longest))
                    break
                except subprocess.TimeoutExpired:
                    command.send_signal(signal.SIGKILL)
                    command.wait()
                    killed += 1
            else:
                start(spec, store, runs).wait()
            record = store.record(request)
            assert record is not None
            assert without_times(record) == without_times(execute(request))
            resumed += record.num_resumes
            runs += 1
            print(f"{runs} runs, {killed} kills, {resumed} resumed in mid-stream", flush=True)


def start(spec: Path, store: Store, seed: int) -> "subprocess.Popen[bytes]":
    """Start the command that makes this run; its worker ends with it."""
    words = ["run", "--spec", str(spec), "--seeds", f"{seed}:{seed + 1}", "--workers", "1"]
    words += ["--out", str(store.root), "--checkpoint-share", str(SHARE)]
    return subprocess.Popen(
        [sys.executable, "-m", "recollect", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 49)
