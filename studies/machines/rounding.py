"""How fast a difference of rounding grows in the first steps of CIFAR10-S.

    python -m studies.machines.rounding [--steps 8] [--from-equal]

Two learners with the same seed, stream and rule (ER's sum) differ only in how the gradient is added
up: by autograd as one sum, or from the gradient engine example by example. Printed is the distance
of their weights after each step, beside the length of the step itself. With --from-equal the
second learner is given the first one's weights before each step: what one step alone adds.
"""

import argparse
import math
from typing import ClassVar, final

import torch
from torch import Tensor
from typing_extensions import override

import recollect
from recollect import Learner, Memory
from recollect.models import reduced_resnet18, seeded
from recollect.models.reduced_resnet18 import Norm
from recollect.retrieval import Uniform
from recollect.rules import GradientSum, Rule
from recollect.rules.rule import Needs
from recollect.storage import Reservoir


@final
class _MeasuredSum(Rule):
    """ER's weights, by way of the Gram matrix."""

    needs: ClassVar[Needs] = "matrix"

    @override
    def __call__(self, gram: Tensor) -> Tensor:
        return GradientSum()(gram)


def growth(
    *, norm: Norm, lr: float, steps: int, from_equal: bool = False, seed: int = 0
) -> list[tuple[float, float]]:
    """Return distance and step length after each step."""
    pair = [_learner(rule, norm=norm, lr=lr, seed=seed) for rule in (GradientSum(), _MeasuredSum())]
    stream = recollect.benchmark("cifar10-split", seed=seed).stream
    found = []
    before = _weights(pair[0])
    for _ in range(steps):
        inputs, labels = next(stream)
        for learner in pair:
            learner.observe(inputs, labels)
        first, second = map(_weights, pair)
        found.append((float((first - second).norm()), float((first - before).norm())))
        before = first
        if from_equal:
            pair[1].model.load_state_dict(pair[0].model.state_dict())
    return found


def _learner(rule: Rule, *, norm: Norm, lr: float, seed: int) -> Learner:
    model = seeded(lambda: reduced_resnet18(10, norm=norm), seed)
    return Learner(
        model,
        torch.optim.SGD(model.parameters(), lr=lr),
        memory=Memory(500),
        storage=Reservoir(),
        retrieval=Uniform(replay=10),
        rule=rule,
        seed=seed,
        transform=recollect.benchmark("cifar10-split").transform,
    )


def _weights(learner: Learner) -> Tensor:
    return torch.cat([p.detach().flatten().clone() for p in learner.model.parameters()])


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--steps", type=int, default=8)
    options.add_argument("--from-equal", action="store_true")
    asked = options.parse_args()
    torch.set_num_threads(1)
    kinds: list[tuple[Norm, float]] = [
        ("batch", 0.1),
        ("batch", 0.05),
        ("batch", 0.01),
        ("group", 0.05),
    ]
    heads = [f"{norm} norm, lr {lr}" for norm, lr in kinds]
    print("| step | " + " | ".join(heads) + " |")
    print("|---|" + "---|" * len(kinds))
    columns = [
        growth(norm=norm, lr=lr, steps=asked.steps, from_equal=asked.from_equal)
        for norm, lr in kinds
    ]
    for step, row in enumerate(zip(*columns, strict=True), start=1):
        cells = [f"{_power(distance)} of {length:.2g}" for distance, length in row]
        print(f"| {step} | " + " | ".join(cells) + " |")


def _power(distance: float) -> str:
    return "0" if not distance else f"10^{math.log10(distance):.1f}"


if __name__ == "__main__":
    main()
