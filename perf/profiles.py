"""Where the time of a step goes, and what a method adds to ER's.

Steps under Python's profiler, which makes every call dearer: shares are to be read, not times. Time
inside torch is that of its operations; the rest is by the folder of the library that spent it.

    python -m perf.profiles [mlp | cifar | transformer]
"""

import argparse
import cProfile
import pstats
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import torch

import recollect
from perf.asking.answer import Answer, Table, lines_of
from perf.asking.measuring import one_thread, tell
from perf.contestants.filling import fill_learner
from perf.contestants.shapes import BATCH, SHAPES
from perf.step_cost import learner_for, seen_at_mean_admission

METHODS: Final[Mapping[str, str]] = {
    "ER": "er", "ER-P": "er-p", "ER-C": "er-c", "GSS": "gss", "ER-PC-MIR": "er-pc-mir",
}  # fmt: skip
STEPS: Final[Mapping[str, int]] = {"mlp": 300, "cifar": 6, "transformer": 40}
_HOME: Final = Path(recollect.__file__).parent
_MOST: Final = 9  # rows of a table


def spent(shape_key: str, method: str, count: int) -> dict[str, float]:
    """Return microseconds per step, by who spent them."""
    shape = SHAPES[shape_key]
    learner = learner_for(shape, method)
    fill_learner(learner, shape)
    rng = torch.Generator().manual_seed(0)
    batches = [(shape.inputs(BATCH, rng), shape.labels(BATCH, rng)) for _ in range(8)]
    assert learner.memory is not None

    def run() -> None:
        for number in range(count):
            learner.memory.seen = seen_at_mean_admission(shape)  # type: ignore[union-attr]
            learner.observe(*batches[number % len(batches)])

    run()
    profiler = cProfile.Profile()
    profiler.runcall(run)
    found: dict[str, float] = defaultdict(float)
    for (file, _, name), (_, _, own, _, _) in pstats.Stats(profiler).stats.items():  # type: ignore[attr-defined]
        found[_who(file, name)] += own / count * 1e6
    return found


def _who(file: str, name: str) -> str:
    if file == "~":
        word = name.strip("<>").removeprefix("built-in method ").removeprefix("method ")
        return f"torch: {_operation(word)}" if "torch" in name or "Tensor" in name else "Python"
    path = Path(file)
    if path.is_relative_to(_HOME):
        return f"recollect.{path.relative_to(_HOME).parts[0].removesuffix('.py')}"
    return "torch, its Python" if "torch" in path.parts else "Python"


def _operation(word: str) -> str:
    return word.split(" ")[0].strip("'").rpartition(".")[2]


def measure(*, shapes: tuple[str, ...] = tuple(STEPS), share: float = 1.0) -> Answer:
    """Profile every method on every shape."""
    one_thread()
    tables = []
    for key in shapes:
        count = max(2, round(STEPS[key] * share))
        found = {}
        for name, method in METHODS.items():
            tell(f"profile: {SHAPES[key].name}, {name}")
            found[name] = spent(key, method, count)
        total = sum(found["ER"].values())
        for name in METHODS:
            if name == "ER":
                continue
            added = {
                who: found[name].get(who, 0.0) - found["ER"].get(who, 0.0)
                for who in {**found[name], **found["ER"]}
            }
            largest = sorted(added, key=lambda who: -added[who])[:_MOST]
            rows: list[list[str | float]] = [
                [who, 100 * added[who] / total] for who in largest if added[who] > 0
            ]
            title = f"{name} on {SHAPES[key].name}: what it adds, in percent of ER's step"
            tables.append(Table(title, ("who", "%"), rows))
    tell("")
    return Answer(
        title="Profiles",
        command="python -m perf.profiles",
        settings={"batch": BATCH},
        tables=tables,
        remarks=[
            "Under a profiler every call costs more, so rows of many small calls look larger."
        ],
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("shapes", nargs="*", default=[*STEPS])
    print("\n".join(lines_of(measure(shapes=tuple(options.parse_args().shapes)))))


if __name__ == "__main__":
    main()
