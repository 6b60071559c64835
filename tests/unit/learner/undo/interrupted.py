"""A process to be killed, and one that goes on from what it left: `python -m ... train|resume DIR`.

All methods run in one process, since starting one costs more than everything it does here.
"""

import hashlib
import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from tests.unit.learner.support import fingerprint, learner, run, sgd, stream
from torch import nn

from recollect import METHODS, Learner

STEPS = 30
STREAM = stream(STEPS, seed=11)


def adam(net: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(net.parameters(), lr=0.01, amsgrad=True)


def momentum(net: nn.Module) -> torch.optim.Optimizer:
    return sgd(net, lr=0.03, momentum=0.9, weight_decay=0.01)


def build(name: str) -> Learner:
    """Build a method's learner; models and optimizers alternate over the methods."""
    index = list(METHODS).index(name)
    kind = ("batch norm", "dropout", "mlp")[index % 3]
    return learner(name, kind, optimizer=(adam, momentum)[index % 2], iterations=1 + index % 2)


def stops() -> Iterator[tuple[str, int]]:
    """Yield each method with the random step at which its process dies."""
    rng = torch.Generator().manual_seed(5)
    for name in METHODS:
        yield name, int(torch.randint(1, STEPS, (), generator=rng))


def digest(learner: Learner) -> str:
    found = fingerprint(learner)
    del found["torch's generator"]
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()


def train(directory: Path) -> None:
    """Save every method at its step, go on a little, and save one again and again until killed."""
    for name, stop in stops():
        world = run(build(name), STREAM[:stop])
        world.save(directory / name)
        run(world, STREAM[stop : stop + 2])
    world = build("er-cb")
    for batch in itertools.cycle(STREAM):
        world.observe(*batch)
        world.save(directory / "endless")
        sys.stdout.write("saved\n")
        sys.stdout.flush()


def resume(directory: Path) -> None:
    """Go on with every method and tell what it came to."""
    found = {}
    for name, stop in stops():
        world = build(name)
        world.load(directory / name)
        found[name] = digest(run(world, STREAM[stop:]))
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    {"train": train, "resume": resume}[sys.argv[1]](Path(sys.argv[2]))
