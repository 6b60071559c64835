"""How much memory does a step need beside model, optimizer and the memory's own bytes?

Each method runs in a process of its own, twice. Once under torch's profiler, which sees every block
its CPU allocator gives and takes: the figure is the most bytes live at once during a step, above
those there were when model, optimizer and memory had been built. It is exact and repeats to the
byte; the first step is told apart, because the gradient engine checks itself in it. And once by the
kernel's high-water mark of resident pages, which also sees the scratch space of convolutions that
does not come from torch, but is rougher; it takes Linux.

    python -m perf.peak_memory
"""

import argparse
import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile

from perf.asking.answer import Answer, Table, lines_of, ratio
from perf.asking.measuring import one_thread, tell
from perf.contestants.bare import BareJointER
from perf.contestants.filling import fill_bare, fill_learner
from perf.contestants.shapes import BATCH, CAPACITY, SHAPES
from perf.step_cost import learner_for, seen_at_mean_admission
from recollect.models import seeded

METHODS: dict[str, tuple[str, dict[str, object]]] = {
    "ER": ("er", {}),
    "ER-P": ("er-p", {}),
    "ER-P, contributions": ("er-p", {"weighs": "contributions"}),
    "ER-C": ("er-c", {}),
    "ER-MIR": ("er-mir", {}),
    "GSS": ("gss", {}),
}
BARE = "bare ER, one pass"
_SHAPE = "cifar"
_MIB = 2**20
Observe = Callable[[Tensor, Tensor], object]


def contestant(name: str) -> Observe:
    """Build a learner with a full memory."""
    shape = SHAPES[_SHAPE]
    if name == BARE:
        bare = BareJointER(shape.build, capacity=CAPACITY, replay=shape.replay)
        fill_bare(bare, shape)
        bare.seen = seen_at_mean_admission(shape)
        return bare.observe
    method, options = METHODS[name]
    learner = learner_for(shape, method, **options)
    fill_learner(learner, shape)
    assert learner.memory is not None
    learner.memory.seen = seen_at_mean_admission(shape)
    return learner.observe


def batches(count: int) -> list[tuple[Tensor, Tensor]]:
    shape, rng = SHAPES[_SHAPE], torch.Generator().manual_seed(0)
    return [(shape.inputs(BATCH, rng), shape.labels(BATCH, rng)) for _ in range(count)]


def allocated(name: str, steps: int) -> dict[str, int]:
    """Follow torch's allocator through the first steps of one method, in this process."""
    observe, incoming = contestant(name), batches(steps)
    starts = []
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        for inputs, labels in incoming:
            with torch.profiler.record_function("a step begins"):
                pass
            observe(inputs, labels)
    results: Any = watched.profiler
    events = sorted(results.kineto_results.events(), key=lambda event: event.start_ns())
    peaks = [0] * steps
    live = 0
    for event in events:
        if event.name() == "a step begins":
            starts.append(event.start_ns())
        elif event.name() == "[memory]" and starts:
            live += event.nbytes()
            peaks[len(starts) - 1] = max(peaks[len(starts) - 1], live)
    return {"first": peaks[0], "later": max(peaks[1:])}


def resident(name: str, steps: int) -> dict[str, int]:
    """Follow resident pages through steps of one method, in this process."""
    incoming = batches(steps)
    load_kernels(incoming)
    observe = contestant(name)
    observe(*incoming[0])
    ctypes.CDLL("libc.so.6").malloc_trim(0)  # gives freed pages back
    Path("/proc/self/clear_refs").write_text("5")  # forgets the high-water mark
    before = status("VmRSS")
    for inputs, labels in incoming[1:]:
        observe(inputs, labels)
    return {"resident": status("VmHWM") - before}


def load_kernels(incoming: list[tuple[Tensor, Tensor]]) -> None:
    """Take a step of a model that is thrown away: code and kernels' caches are no step's cost."""
    model = seeded(SHAPES[_SHAPE].build, 0)
    inputs, labels = (torch.cat(both) for both in zip(*incoming[:2], strict=True))
    F.cross_entropy(model(inputs), labels).backward()  # type: ignore[no-untyped-call]


def status(field: str) -> int:
    """Return VmRSS, the bytes resident now, or VmHWM, the most there were."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status does not say {field}; this question takes Linux.")


def ask(name: str, way: str, steps: int) -> dict[str, float]:
    """Let a fresh process measure; return MiB."""
    # Large blocks come from and go back to the system, so that resident pages follow what is live.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}
    command = [sys.executable, "-m", "perf.peak_memory", "--alone", name, "--way", way]
    ended = subprocess.run(
        [*command, "--steps", str(steps)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # the profiler says that it starts and stops
        text=True,
        check=True,
        env=environment,
        cwd=Path(__file__).parents[1],
    )
    found: dict[str, int] = json.loads(ended.stdout)
    return {key: value / _MIB for key, value in found.items()}


def measure(*, repetitions: int = 2, steps: int = 3, names: tuple[str, ...] = ()) -> Answer:
    """Measure every method, alternated, in fresh processes."""
    names = names or (BARE, *METHODS)
    found: dict[str, dict[str, list[float]]] = {name: {} for name in names}
    for repetition in range(repetitions):
        for name in names:
            tell(f"peak memory: {name}, {repetition + 1} of {repetitions}")
            for way in ("allocated", "resident"):
                for key, value in ask(name, way, steps).items():
                    found[name].setdefault(key, []).append(value)
    tell("")
    peaks = {f"peak bytes of {name}": values["later"] for name, values in found.items()}
    shape = SHAPES[_SHAPE].name
    pairs = [(name, "ER") for name in names if name not in ("ER", BARE)] + [("ER", BARE)]
    keys = ("later", "first", "resident")
    return Answer(
        title=f"Memory of a step, {shape}",
        command="python -m perf.peak_memory",
        settings={
            "batch": BATCH,
            "replayed": SHAPES[_SHAPE].replay,
            "slots": CAPACITY,
            "repetitions": repetitions,
        },
        unit="MiB",
        times=peaks,
        ratios=[
            ratio(f"peak bytes of {what}", f"peak bytes of {than}", shape, peaks)
            for what, than in pairs
            if {what, than} <= set(names)
        ],
        tables=[
            Table(
                "MiB beyond model, optimizer and memory",
                ("", "a step", "the first step", "a step, resident pages"),
                [[name, *(median(found[name][key]) for key in keys)] for name in names],
            )
        ],
        remarks=[
            "Counted: most bytes live in torch's CPU allocator during a step, above those after "
            "set-up. Resident pages also hold scratch space that does not come from torch, and "
            "leave out what the learner keeps between steps."
        ],
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--alone", choices=[BARE, *METHODS], help="measure in this process")
    options.add_argument("--way", choices=("allocated", "resident"), default="allocated")
    options.add_argument("--steps", type=int, default=3)
    options.add_argument("--repetitions", type=int, default=2)
    chosen = options.parse_args()
    if chosen.alone:
        one_thread()
        measured = {"allocated": allocated, "resident": resident}[chosen.way]
        print(json.dumps(measured(chosen.alone, chosen.steps)))
    else:
        print("\n".join(lines_of(measure(repetitions=chosen.repetitions, steps=chosen.steps))))


if __name__ == "__main__":
    main()
