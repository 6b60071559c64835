"""What methods cost over ER as a step grows: replayed examples, classes, parameters.

The perceptron of MNIST-S. One quantity grows at a time; the others stay as the benchmark has them.

    python -m perf.growth
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import torch

from perf.asking.answer import Answer, lines_of, ratio
from perf.asking.measuring import alternate, one_thread, tell
from perf.contestants.filling import fill_learner
from perf.contestants.shapes import BATCH, SHAPES, Shape
from perf.step_cost import learner_for, seen_at_mean_admission, steps
from recollect.learner import Learner
from recollect.models import mlp

METHODS: Final[Mapping[str, str]] = {"ER": "er", "ER-P": "er-p", "ER-C": "er-c"}
GROWS: Final[Mapping[str, Sequence[int]]] = {
    "replayed examples": (10, 50, 200),
    "classes": (10, 100, 1000),
    "width of hidden layers": (100, 400, 1600),
}


def shape_of(kind: str, size: int) -> Shape:
    """Return the perceptron with one quantity of another size."""
    usual = SHAPES["mlp"]
    if kind == "replayed examples":
        return replace(usual, replay=size)
    if kind == "classes":
        return replace(usual, classes=size, build=partial(mlp, 784, size))
    return replace(usual, build=partial(mlp, 784, 10, hidden=(size, size)))


def block(shape: Shape, method: str, count: int) -> Callable[[], float]:
    learner = learner_for(shape, method)
    fill_learner(learner, shape)
    rng = torch.Generator().manual_seed(0)
    batches = [(shape.inputs(BATCH, rng), shape.labels(BATCH, rng)) for _ in range(16)]

    def rewind(learner: Learner = learner) -> None:
        assert learner.memory is not None
        learner.memory.seen = seen_at_mean_admission(shape)

    return steps(learner.observe, rewind, batches, count)


def measure(*, repetitions: int = 15, count: int = 10) -> Answer:
    """Time every method at every size."""
    one_thread()
    times: dict[str, list[float]] = {}
    ratios = []
    points: list[dict[str, object]] = []
    for kind, sizes in GROWS.items():
        for size in sizes:
            at = f"{size:,} {kind}"
            tell(f"{at}: building")
            blocks = {n: block(shape_of(kind, size), m, count) for n, m in METHODS.items()}
            for warm in blocks.values():
                warm()
            found = alternate(blocks, repetitions, told=at)
            for name in METHODS:
                times[f"{name}, {at}"] = found[name]
                if name != "ER":
                    over = ratio(name, "ER", at, found)
                    ratios.append(over)
                    point = {"grows": kind, "size": size, "method": name, "median": over.median}
                    points.append(point | {"low": over.low, "high": over.high})
    return Answer(
        title="Growth",
        command="python -m perf.growth",
        settings={"batch": BATCH, "repetitions": repetitions, "steps a block": count},
        unit="s of CPU a step",
        times=times,
        ratios=ratios,
        points=points,
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repetitions", type=int, default=15)
    print("\n".join(lines_of(measure(repetitions=options.parse_args().repetitions))))


if __name__ == "__main__":
    main()
