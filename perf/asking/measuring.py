"""Alternate contestants, so that a busy machine hits all of them."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: its threads spin on each other

import sys
import time
from collections.abc import Callable, Mapping

import torch

Block = Callable[[], float]


def one_thread() -> None:
    """Run torch on one thread: CPU time then is the time of the code itself."""
    torch.set_num_threads(1)


def cpu_seconds(act: Callable[[], object]) -> float:
    """Return the CPU time of one call."""
    start = time.process_time()
    act()
    return time.process_time() - start


def alternate(
    blocks: Mapping[str, Block], repetitions: int, *, told: str = ""
) -> dict[str, list[float]]:
    """Ask every contestant for a block of work, `repetitions` times over.

    Args:
        blocks: Contestants; each does its block and returns what it cost.
        repetitions: How often.
        told: What to call it where progress is shown.

    Returns:
        What each block cost, in order of repetition.
    """
    costs: dict[str, list[float]] = {name: [] for name in blocks}
    names = list(blocks)
    for repetition in range(repetitions):
        # Another one begins each time: whoever runs behind a big neighbour finds a cold cache.
        first = repetition % len(names)
        for name in names[first:] + names[:first]:
            costs[name].append(blocks[name]())
        tell(f"{told}: {repetition + 1} of {repetitions}")
    tell("")
    return costs


def tell(progress: str) -> None:
    """Show one line of progress, over the last one in a terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{progress}", end="", file=sys.stderr, flush=True)
    elif progress:
        print(f"  {progress}", file=sys.stderr, flush=True)
