"""Whether bfloat16 pays on this processor: it halves a step on one and doubles it on another.

Run as a module it measures; the command asks it in a process of its own, which imports torch.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Final

from recollect.experiments.specs.cell import Cell

# Benchmarks whose usual model convolves images: classes and side in pixels. A small perceptron's
# step is bound by the number of its operations, and a cast is one more.
_IMAGES: Final = {"cifar10": (10, 32), "mini-imagenet": (100, 84)}
_SECONDS: Final = 120  # it takes three; after so many nobody waits any more


def bfloat16_ratio(cell: Cell) -> float | None:
    """Return the time of a training step under bfloat16 autocast over that in float32.

    None where the cell's model is no convolutional one, or if it could not be measured.
    """
    if cell.model["name"] not in ("usual", "reduced-resnet18"):
        return None
    image = _IMAGES.get(cell.stream["data"])  # data of the user's has no such name
    if image is None:
        return None
    command = [sys.executable, "-m", __name__, *map(str, image)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment, timeout=_SECONDS
        )
        return float(json.loads(ended.stdout))
    except (subprocess.SubprocessError, OSError, ValueError):
        return None


def _measured(num_classes: int, side: int, *, repetitions: int = 5) -> float:
    import torch
    from torch.nn import functional as F

    from recollect.models import reduced_resnet18, seeded

    torch.set_num_threads(1)
    model = seeded(lambda: reduced_resnet18(num_classes, image_size=side), 0)
    images = torch.linspace(-1, 1, 20 * 3 * side**2).sin().reshape(20, 3, side, side)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.arange(20) % num_classes

    def step(*, casts: bool) -> float:
        start = time.process_time()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=casts):
            outputs = model(images)
        torch.autograd.grad(F.cross_entropy(outputs.float(), labels), [*model.parameters()])
        return time.process_time() - start

    return _median_ratio(lambda: step(casts=True), lambda: step(casts=False), repetitions)


def _median_ratio(one: Callable[[], float], other: Callable[[], float], repetitions: int) -> float:
    one(), other()  # allocators and kernels
    return median(one() / other() for _ in range(repetitions))


if __name__ == "__main__":
    json.dump(_measured(*map(int, sys.argv[1:])), sys.stdout)
