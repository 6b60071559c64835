"""Does `torch.compile` pay within one run?

The bare one-pass loop with its model compiled over the same loop as it is, images channels last in
both; the first two steps, which compile, by the clock and apart. A run pays if its steps save more
than that.

    python -m perf.compiled
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

import torch

from perf.asking.answer import Answer, Table, lines_of, ratio
from perf.asking.measuring import Block, alternate, cpu_seconds, one_thread
from perf.contestants.bare import BareJointER
from perf.contestants.filling import fill_bare
from perf.contestants.shapes import BATCH, CAPACITY, SHAPES
from perf.roofline import BareChannelsLast

_CACHE = "TORCHINDUCTOR_CACHE_DIR"
# Steps of one run of the benchmark that the shape stands for.
_STEPS_OF_A_RUN = {"mlp": 500, "cifar": 4875}


def contestant(shape_name: str, *, is_compiled: bool) -> tuple[Block, float]:
    """Return what takes a block of steps, and the seconds that its first two steps took."""
    shape = SHAPES[shape_name]
    kind = BareChannelsLast if len(shape.example) == 3 else BareJointER
    bare = kind(shape.build, capacity=CAPACITY, replay=shape.replay)
    fill_bare(bare, shape)
    if is_compiled:
        bare.model = torch.compile(bare.model)  # type: ignore[assignment]
    rng = torch.Generator().manual_seed(0)
    inputs, labels = shape.inputs(BATCH, rng), shape.labels(BATCH, rng)
    start = time.perf_counter()
    for _ in range(2):
        bare.observe(inputs, labels)
    seconds = time.perf_counter() - start

    def steps() -> None:
        for _ in range(shape.steps_a_block):
            bare.observe(inputs, labels)

    return lambda: cpu_seconds(steps) / shape.steps_a_block, seconds


def measure(*, repetitions: int = 9, shapes: tuple[str, ...] = ("mlp", "cifar")) -> Answer:
    """Alternate the loops on each shape."""
    one_thread()
    times: dict[str, list[float]] = {}
    ratios = []
    rows: list[list[str | float]] = []
    for name in shapes:
        shape, steps = SHAPES[name], _STEPS_OF_A_RUN[name]
        plain, compiled = f"as it is, {shape.name}", f"compiled, {shape.name}"
        first, _ = contestant(name, is_compiled=False)
        with _empty_cache():
            second, compiling = contestant(name, is_compiled=True)
        found = alternate({plain: first, compiled: second}, repetitions, told=f"compiled {name}")
        times |= found
        ratios.append(ratio(compiled, plain, shape.name, found, named="bare ER, compiled"))
        saved = median(found[plain]) - median(found[compiled])
        rows.append([shape.name, compiling, steps * median(found[plain]), steps * saved])
    columns = ("", "s to compile, by the clock", "s of CPU a run", "s that a run saves")
    return Answer(
        title="Does compiling pay?",
        command="python -m perf.compiled",
        settings={"examples a step": 2 * BATCH, "repetitions": repetitions},
        unit="s of CPU a step",
        times=times,
        ratios=ratios,
        tables=[Table("Compiling, and what one run gets back", columns, rows)],
    )


@contextmanager
def _empty_cache() -> Iterator[None]:
    """Let the compiler find nothing that an earlier run left, and leave nothing itself."""
    before = os.environ.get(_CACHE)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ[_CACHE] = folder
        try:
            yield
        finally:
            os.environ.pop(_CACHE)
            if before is not None:
                os.environ[_CACHE] = before


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repetitions", type=int, default=9)
    print("\n".join(lines_of(measure(repetitions=options.parse_args().repetitions))))


if __name__ == "__main__":
    main()
