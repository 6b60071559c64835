"""Kill a run again and again: `python -m tests.figures.kills 49`.

Each round starts the worker of a run, kills it with SIGKILL at a random moment, and begins again;
when a run ends, its record must be that of a run never disturbed. Prints how many kills there were
and how many of the runs' continuations were real, from a checkpoint in mid-stream.
"""

import json
import random
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
            for _ in range(min(MOST_AT_ONE_RUN, num_kills - killed)):
                command = start(spec, store, runs)
                until_it_runs(command)
                try:
                    command.wait(timeout=moments.uniform(0.1, 2.0))
                    break
                except subprocess.TimeoutExpired:
                    command.kill()
                    command.wait()
                    killed += 1
            else:
                start(spec, store, runs).communicate()
            record = store.record(request)
            assert record is not None
            assert without_times(record) == without_times(execute(request))
            resumed += record.num_resumes
            runs += 1
            print(f"{runs} runs, {killed} kills, {resumed} resumed in mid-stream", flush=True)


def until_it_runs(command: "subprocess.Popen[str]") -> None:
    """Wait for the first step of the run, or for the command's end."""
    assert command.stdout is not None
    for line in command.stdout:
        if json.loads(line)["event"] in ("progress", "done"):
            return


def start(spec: Path, store: Store, seed: int) -> "subprocess.Popen[str]":
    """Start the command that makes this run; its worker ends with it."""
    words = ["run", "--spec", str(spec), "--seeds", f"{seed}:{seed + 1}", "--workers", "1"]
    words += ["--out", str(store.root), "--checkpoint-share", str(SHARE), "--json"]
    return subprocess.Popen(
        [sys.executable, "-m", "recollect", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 49)
