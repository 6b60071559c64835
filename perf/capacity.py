"""Does a step grow with the memory?

Small examples (16 floats, an MLP of two hidden layers of 100), so that nothing hides the memory's
share. Every slot is full. Two states: *just full*, when as good as every newcomer is admitted, the
worst a memory can meet; and *10 x capacity seen*, when one in ten is. The counter of examples seen
is set back before each step, so the state stays what it is called.

    python -m perf.capacity
"""

import argparse
from collections.abc import Callable, Sequence

import torch

import recollect
from perf.asking.answer import Answer, lines_of, ratio
from perf.asking.measuring import alternate, cpu_seconds, one_thread, tell
from perf.contestants.filling import fill_learner
from perf.contestants.shapes import BATCH, Shape
from recollect.learner import Learner
from recollect.models import mlp, seeded

SMALL = Shape("small MLP", lambda: mlp(16, 10), (16,))
SLOTS = (500, 1_000, 10_000, 100_000, 1_000_000)
STATES = {"just full": 1, "10 x capacity seen": 10}
METHODS = {"ER": "er", "ER-C": "er-c"}


def learner_of(method: str, slots: int) -> Learner:
    model = seeded(SMALL.build, 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    learner = recollect.method(method, model, optimizer, capacity=slots, seed=0)
    fill_learner(learner, SMALL)
    return learner


def block(learner: Learner, seen: int, steps: int) -> Callable[[], float]:
    rng = torch.Generator().manual_seed(2)
    batches = [(SMALL.inputs(BATCH, rng), SMALL.labels(BATCH, rng)) for _ in range(steps)]

    def run() -> None:
        assert learner.memory is not None
        for inputs, labels in batches:
            learner.memory.seen = seen
            learner.observe(inputs, labels)

    return lambda: cpu_seconds(run) / steps


def measure(*, repetitions: int = 15, steps: int = 20, slots: Sequence[int] = SLOTS) -> Answer:
    """Time steps of ER and ER-C at every capacity and in both states."""
    one_thread()
    learners = {}
    for name, method in METHODS.items():
        for count in slots:
            tell(f"filling {count:,} slots for {name}")
            learners[name, count] = learner_of(method, count)
    times: dict[str, list[float]] = {}
    ratios = []
    points: list[dict[str, object]] = []
    for state, multiple in STATES.items():
        blocks = {
            f"{name}, {count:,} slots": block(learner, count * multiple, steps)
            for (name, count), learner in learners.items()
        }
        for warm in blocks.values():
            warm()
        found = alternate(blocks, repetitions, told=f"capacity, {state}")
        pairs = [
            *(
                (f"{m}, {n:,} slots", f"{m}, {slots[0]:,} slots")
                for m in METHODS
                for n in slots[1:]
            ),
            *((f"ER-C, {count:,} slots", f"ER, {count:,} slots") for count in slots),
        ]
        ratios += [ratio(what, than, state, found) for what, than in pairs]
        for name, count in learners:
            key = f"{name}, {count:,} slots"
            grown = ratio(key, f"ER, {slots[0]:,} slots", state, found)
            point = {"method": name, "slots": count, "state": state, "median": grown.median}
            points.append(point | {"low": grown.low, "high": grown.high})
        times |= {f"{name}, {state}": values for name, values in found.items()}
    return Answer(
        title="Capacity of the memory",
        command="python -m perf.capacity",
        settings={
            "example": "16 floats",
            "batch": BATCH,
            "replayed": 10,
            "repetitions": repetitions,
            "steps a block": steps,
        },
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
