"""Count the files that a reader of one step walks through, and how often the step changes file.

    python scripts/walk.py [--list]

One step of ER-PC-MIR on the MLP of MNIST-S and on the reduced ResNet18, after enough steps that
the memory is full and all plans are made. `sys.setprofile` sees each call; a change is counted
whenever a call goes into another file of the package than the call before it. It imports nothing
of the repository but the package, so another version can walk too: `PYTHONPATH=OTHER/src`.
"""

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import torch
from torch import Tensor, nn

import recollect
from recollect.models import mlp, reduced_resnet18, seeded

ROOT = str(Path(recollect.__file__).parent)
WARM_UP = 8


class Walk:
    """Files of the package in the order in which a step goes through them."""

    def __init__(self) -> None:
        self.entered: Counter[str] = Counter()
        self.num_changes = 0
        self._current = ""

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Take note of a call into the package."""
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(ROOT):
            return
        self.entered[file.removeprefix(ROOT + "/")] += 1
        if file != self._current:
            self.num_changes += 1
            self._current = file


def walk(build: Callable[[], nn.Module], shape: tuple[int, ...]) -> Walk:
    """Record one step of ER-PC-MIR."""
    model = seeded(build, 0)
    sgd = torch.optim.SGD(model.parameters(), lr=0.05)
    learner = recollect.method("er-pc-mir", model, sgd, capacity=40, replay=10, seed=0)
    rng = torch.Generator().manual_seed(0)

    def batch() -> tuple[Tensor, Tensor]:
        return torch.randn(10, *shape, generator=rng), torch.randint(10, (10,), generator=rng)

    for _ in range(WARM_UP):
        learner.observe(*batch())
    found, (inputs, labels) = Walk(), batch()
    sys.setprofile(found)
    try:
        learner.observe(inputs, labels)
    finally:
        sys.setprofile(None)
    return found


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--list", action="store_true", help="name the files, most called first")
    asked = options.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for title, found in (
        ("MLP", walk(lambda: mlp(784, 10), (784,))),
        ("reduced ResNet18", walk(lambda: reduced_resnet18(10), (3, 32, 32))),
    ):
        num_calls = found.entered.total()
        print(
            f"{title}: {len(found.entered)} files, {num_calls} calls, "
            f"{found.num_changes} changes of file"
        )
        if asked.list:
            for file, times in found.entered.most_common():
                print(f"  {times:6} {file}")


if __name__ == "__main__":
    main()
