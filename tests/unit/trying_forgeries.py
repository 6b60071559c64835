"""Load forged checkpoints into learners, and count what comes of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tests.unit.forging import Forger
from tests.unit.learner.support import (
    CLASSES,
    differences,
    fingerprint,
    learner,
    model,
    run,
    sgd,
    stream,
)
from torch import Tensor, nn
from typing_extensions import override

from recollect import Learner, Memory
from recollect.errors import CheckpointError, NonFiniteError
from recollect.models import seeded
from recollect.nested import leaves
from recollect.storage import ConfidenceReservoir

FORGERIES = 200  # a part: 5,000 in all
NUM_PARTS = 25


class Remembering(nn.Module):
    """Two inputs by name, and a count outside parameters and buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.known = model(), 0

    @override
    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        self.known += self.training
        logits: Tensor = self.body(left + right.float())
        return logits

    @override
    def get_extra_state(self) -> Any:
        return {"known": self.known}

    @override
    def set_extra_state(self, state: Any) -> None:
        self.known = state["known"] + 0


def remembering() -> Learner:
    net = seeded(Remembering, 0)
    optimizer = torch.optim.AdamW(net.parameters(), amsgrad=True)
    return Learner(net, optimizer, memory=Memory(10), storage=ConfidenceReservoir())


BUILDERS: dict[str, Callable[[], Learner]] = {
    "er-cb": partial(learner, "er-cb", "batch norm", optimizer=partial(sgd, momentum=0.9)),
    "er-pc-mir": partial(
        learner, "er-pc-mir", optimizer=lambda n: torch.optim.Adam(n.parameters())
    ),
    "gss": partial(learner, "gss", "dropout"),
    "van": partial(learner, "van", optimizer=lambda net: torch.optim.Adagrad(net.parameters())),
    "remembering": remembering,
}


def batches(kind: str, steps: int, seed: int = 0) -> list[tuple[Any, Tensor]]:
    if kind != "remembering":
        return [(inputs, labels) for inputs, labels in stream(steps, seed=seed)]
    return [({"left": x, "right": (4 * x).to(torch.int8)}, y) for x, y in stream(steps, seed=seed)]


def nonsense_in(memory: Memory, honest: Memory | None) -> str | None:
    assert honest is not None
    labels = memory.labels.tolist()
    claims = {
        "capacity": memory.capacity == honest.capacity and len(memory) <= memory.capacity,
        "labels": 0 <= min(labels, default=0) <= max(labels, default=0) < CLASSES,
        "ages": min(memory.ages().tolist(), default=1) >= 1,
        "replays": int(memory.times_replayed.min()) >= 0,
        "scores": not bool(memory.score.isnan().any()),
        "increments": bool((memory.margin_increment.abs() <= 2.1).all()),
    }
    return next((f"its {what}" for what, is_so in claims.items() if not is_so), None)


def nonsense(world: Learner, kind: str, again: Path) -> str | None:
    """Say what is wrong with a learner that took a forged file; None if nothing is."""
    tensors = {**dict(world.model.named_parameters()), **dict(world.model.named_buffers())}
    if bad := [name for name, tensor in tensors.items() if not bool(tensor.isfinite().all())]:
        return f"{bad} not finite"
    if not (0 <= world.step <= 2**53 and 0 <= world.seen <= 2**53):
        return "its counters"
    if any(not 0 <= group["lr"] < 1e39 for group in world.optimizer.param_groups):
        return "its learning rate"
    memory = world.memory
    if memory is None or memory.is_empty:
        return trouble_ahead(world, kind, again)
    wrong = nonsense_in(memory, BUILDERS[kind]().memory)
    inputs, _ = memory.read(torch.arange(len(memory)))
    # `observe` takes such inputs too: nobody knows which finite number is too large for a model.
    if any(bool((leaf.abs() > 1e15).any()) for leaf in leaves(inputs)):
        return wrong
    return wrong or trouble_ahead(world, kind, again)


def trouble_ahead(world: Learner, kind: str, again: Path) -> str | None:
    following, memory = batches(kind, 2, seed=9), world.memory
    if memory is not None and not memory.is_empty:  # its own, whatever shape a forger gave them
        inputs, labels = memory.read(torch.arange(min(5, len(memory))))
        following = [(inputs, labels)] * 2
    try:
        for inputs, labels in following:
            world.observe(inputs, labels)
        world.save(again)
        BUILDERS[kind]().load(again)
    except NonFiniteError:
        return None  # weights too large to learn with: said in words, and nothing was learnt
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


@dataclass
class Forgeries:
    """What came of forged files: counts, and what was done to each that went wrong."""

    refused: int = 0
    accepted: int = 0
    half_loaded: list[str] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)
    nonsense: list[str] = field(default_factory=list)


def try_forgeries(part: int, folder: Path) -> Forgeries:
    """Load as many forged files as a part has, one after the other."""
    kind = [*BUILDERS][part % len(BUILDERS)]
    build, forged = BUILDERS[kind], folder / "forged"
    run(build(), batches(kind, 4)).save(folder / "honest")
    forger = Forger(folder / "honest", part)
    victim = run(build(), batches(kind, 3, seed=1))
    before, outcome = fingerprint(victim), Forgeries()
    for _ in range(FORGERIES):
        what = forger.forge(forged)
        try:
            victim.load(forged)
        except CheckpointError:
            if moved := differences(before, fingerprint(victim)):
                outcome.half_loaded.append(f"half loaded ({', '.join(moved[:3])}): {what}")
            outcome.refused += 1
            continue
        except Exception as error:
            outcome.raw.append(f"raw {type(error).__name__}: {error}: {what}")
        else:
            outcome.accepted += 1
            if wrong := nonsense(victim, kind, folder / "again"):
                outcome.nonsense.append(f"nonsense ({wrong}): {what}")
        victim = run(build(), batches(kind, 3, seed=1))
    return outcome
