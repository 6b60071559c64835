"""What does a step cost, beside loops written by hand?

Alternates all contestants in one process: ours, and the loops of `perf.contestants.bare`. The
memory is full and stays at the point where a newcomer is admitted with the mean probability over
the stream of the benchmark: 0.33 on MNIST-S, 0.06 on CIFAR10-S, 0.52 on MINI-S.

    python -m perf.step_cost mlp            # or cifar, mini, transformer
"""

import argparse
from collections.abc import Callable

import torch
from torch import Tensor

import recollect
from perf.asking.answer import Answer, lines_of, ratio
from perf.asking.measuring import alternate, cpu_seconds, one_thread, tell
from perf.contestants.bare import BareER, BareJointER, BareMIR, BarePGD
from perf.contestants.filling import fill_bare, fill_learner
from perf.contestants.shapes import BATCH, CAPACITY, SHAPES, Shape
from recollect.learner import Learner
from recollect.models import seeded

# name on the page, name of the method, options
OURS: tuple[tuple[str, str, dict[str, object]], ...] = (
    ("ER", "er", {}),
    ("ER, separate passes", "er", {"passes": "separate"}),
    ("ER-P", "er-p", {}),
    ("ER-P, head", "er-p", {"measured": "head"}),
    ("ER-P, matrix", "er-p", {"measure_all": True}),
    ("ER-P, contributions", "er-p", {"weighs": "contributions"}),  # differs under BatchNorm only
    ("ER-C", "er-c", {}),
    ("ER-MIR", "er-mir", {}),
    ("ER-MIR, separate passes", "er-mir", {"passes": "separate"}),
    ("ER-PC-MIR", "er-pc-mir", {}),
    ("GSS", "gss", {}),
    ("A-GEM", "a-gem", {}),
)
BARE: dict[str, type[BareER]] = {
    "bare ER, one pass": BareJointER,
    "bare ER, two passes": BareER,
    "bare MIR": BareMIR,
    "bare PGD, looped": BarePGD,
}
PAIRS = (
    ("ER", "bare ER, one pass"),
    ("ER, separate passes", "bare ER, two passes"),
    ("ER-P", "ER"),
    ("ER-P, head", "ER"),
    ("ER-P, matrix", "ER"),
    ("ER-P, contributions", "ER"),
    ("ER-C", "ER"),
    ("ER-P", "bare PGD, looped"),
    ("ER-MIR, separate passes", "bare MIR"),  # the authors' order of work
    ("ER-MIR", "bare MIR"),
    ("GSS", "ER"),
    ("ER-MIR", "ER"),
    ("ER-PC-MIR", "ER"),
    ("A-GEM", "ER"),
    ("bare ER, two passes", "bare ER, one pass"),
)


def seen_at_mean_admission(shape: Shape) -> int:
    """How much of a stream a memory has seen when it admits as many as over the whole stream."""
    return round(CAPACITY / shape.admitted)


def learner_for(shape: Shape, method: str, **options: object) -> Learner:
    model = seeded(shape.build, 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=shape.learning_rate)
    return recollect.method(
        method, model, optimizer, capacity=CAPACITY, replay=shape.replay, seed=0, **options
    )


def steps(
    act: Callable[[Tensor, Tensor], object],
    rewind: Callable[[], None],
    batches: list[tuple[Tensor, Tensor]],
    count: int,
) -> Callable[[], float]:
    """Make a block of `count` steps; it returns the CPU time of one."""
    position = 0

    def run() -> None:
        nonlocal position
        for _ in range(count):
            act(*batches[position % len(batches)])
            position += 1

    def block() -> float:
        rewind()
        return cpu_seconds(run) / count

    return block


def contestants(
    shape: Shape, batches: list[tuple[Tensor, Tensor]], count: int
) -> dict[str, Callable[[], float]]:
    """Build everybody, with the memory full."""
    blocks = {}
    for name, kind in BARE.items():
        bare = kind(
            shape.build,
            capacity=CAPACITY,
            replay=shape.replay,
            learning_rate=shape.learning_rate,
        )
        fill_bare(bare, shape)

        def rewind_bare(bare: BareER = bare) -> None:
            bare.seen = seen_at_mean_admission(shape)

        blocks[name] = steps(bare.observe, rewind_bare, batches, count)
    for name, method, options in OURS:
        learner = learner_for(shape, method, **options)
        fill_learner(learner, shape)

        def rewind(learner: Learner = learner) -> None:
            assert learner.memory is not None
            learner.memory.seen = seen_at_mean_admission(shape)

        blocks[name] = steps(learner.observe, rewind, batches, count)
    return blocks


def measure(key: str, *, repetitions: int | None = None, count: int | None = None) -> Answer:
    """Time every contestant on one shape."""
    one_thread()
    shape = SHAPES[key]
    repetitions = repetitions or shape.repetitions
    count = count or shape.steps_a_block
    rng = torch.Generator().manual_seed(0)
    num_batches = min(64, 2 + repetitions * count)
    batches = [(shape.inputs(BATCH, rng), shape.labels(BATCH, rng)) for _ in range(num_batches)]
    tell(f"{shape.name}: building")
    blocks = contestants(shape, batches, count)
    for block in blocks.values():  # allocators, kernels and first-step checks
        block()
    times = alternate(blocks, repetitions, told=f"step cost, {shape.name}")
    return Answer(
        title=f"A step of {shape.name}",
        command=f"python -m perf.step_cost {key}",
        settings={
            "batch": BATCH,
            "replayed": shape.replay,
            "slots": CAPACITY,
            "repetitions": repetitions,
            "steps a block": count,
        },
        unit="s of CPU a step",
        times=times,
        ratios=[ratio(what, than, shape.name, times) for what, than in PAIRS],
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("shape", nargs="?", choices=SHAPES, default="mlp")
    options.add_argument("--repetitions", type=int)
    chosen = options.parse_args()
    print("\n".join(lines_of(measure(chosen.shape, repetitions=chosen.repetitions))))


if __name__ == "__main__":
    main()
