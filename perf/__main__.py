"""Ask every question, one after the other: `make perf`."""

import subprocess
import sys

QUESTIONS = (
    ("perf.step_cost",),
    ("perf.step_cost", "--resnet"),
    ("perf.engines",),
    ("perf.convolutions",),
    ("perf.streams",),
    ("perf.runner_overhead",),
)

if __name__ == "__main__":
    for module, *options in QUESTIONS:
        print(f"\n== python -m {' '.join([module, *options])}", flush=True)
        subprocess.run([sys.executable, "-m", module, *options], check=True)
