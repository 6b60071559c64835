"""`Learner.load` takes over all of a checkpoint or nothing, whatever raises."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest
import torch
from tests.unit.learner.support import (
    CAPACITY,
    differences,
    fingerprint,
    learner,
    model,
    run,
    sgd,
    stream,
)
from tests.unit.learner.undo.raising import Tracer, each_line_once
from torch import Tensor, nn
from typing_extensions import override

from recollect import Learner, Memory
from recollect.checkpoint import read_checkpoint
from recollect.errors import CheckpointError
from recollect.learner.saved.state import restore_learner
from recollect.storage import Evidence, Placement, Storage


class Misspelt(Storage):
    """Reads another name than it wrote, or breaks off in the middle."""

    def __init__(self) -> None:
        self.count, self.halves = 0, [0.0]

    @override
    def place(
        self, labels: Tensor, memory: Memory, evidence: Evidence, rng: torch.Generator
    ) -> Placement:
        self.count += len(labels)
        self.halves = [self.count / 2]
        return Placement(torch.arange(len(labels)) + len(memory))

    @override
    def state(self) -> dict[str, Tensor]:
        return {"count": torch.tensor(self.count), "halves": torch.tensor(self.halves)}

    @override
    def restore(self, state: Mapping[str, Tensor]) -> None:
        self.halves = state["halves"].tolist()
        self.count = int(state["counts"])


def misspelling() -> Learner:
    net = model()
    return Learner(net, sgd(net, momentum=0.9), memory=Memory(40), storage=Misspelt())


class Refusing(nn.Module):
    """Keeps extra state, and takes no other number than its own."""

    def __init__(self) -> None:
        super().__init__()
        self.number = 0
        self.body = model()

    @override
    def forward(self, inputs: Tensor) -> Tensor:
        self.number += 1
        return self.body(inputs)

    @override
    def get_extra_state(self) -> int:
        return self.number

    @override
    def set_extra_state(self, state: int) -> None:
        if state != self.number:
            raise OverflowError(f"not {state}")


def refusing() -> Learner:
    net = Refusing()
    return Learner(net, sgd(net), memory=Memory(CAPACITY))


class RefusingOptimizer(torch.optim.SGD):
    """Raises when its state was loaded."""

    @override
    def load_state_dict(self, state_dict: object) -> None:
        super().load_state_dict(state_dict)  # type: ignore[arg-type]
        self.param_groups[0]["lr"] = 7.0
        raise IndexError("no such schedule")


def with_refusing_optimizer() -> Learner:
    net = model()
    return Learner(net, RefusingOptimizer(net.parameters(), lr=0.1, momentum=0.9))


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (misspelling, "KeyError: 'counts'"),
        (refusing, "OverflowError: not 2"),
        (with_refusing_optimizer, "IndexError: no such schedule"),
    ],
)
def test_a_part_that_cannot_take_its_state_leaves_the_learner_as_it_was(
    build: object, reason: str, tmp_path: Path
) -> None:
    assert callable(build)
    run(build(), stream(2)).save(tmp_path / "it")
    world: Learner = run(build(), stream(4, seed=3)[:3])
    before = fingerprint(world)
    own = dict(vars(world.storage)) if isinstance(world.storage, Misspelt) else {}
    with pytest.raises(CheckpointError, match=reason):
        world.load(tmp_path / "it")
    assert differences(before, fingerprint(world)) == []
    assert own == (dict(vars(world.storage)) if own else {})


@pytest.mark.parametrize(
    ("name", "kind"), [("er-cb", "mlp"), ("er-c", "batch norm"), ("van", "dropout")]
)
def test_an_interrupt_at_any_line_of_a_load_leaves_all_or_nothing(
    name: str, kind: str, tmp_path: Path
) -> None:
    build = partial(learner, name, kind, optimizer=partial(sgd, momentum=0.9))
    saved = run(build(), stream(4))
    saved.save(tmp_path / "it")
    after = fingerprint(saved)
    world = run(build(), stream(3, seed=7))
    before, outcomes = fingerprint(world), {"before": 0, "after": 0}
    checkpoint = read_checkpoint(tmp_path / "it")
    events = each_line_once(lambda: restore_learner(build(), checkpoint))
    for event in events:
        tracer = Tracer(event)
        try:
            with tracer.watching():
                restore_learner(world, checkpoint)
        except KeyboardInterrupt:
            pass
        found = fingerprint(world)
        if not differences(before, found):
            outcomes["before"] += 1
            continue
        assert differences(after, found) == [], tracer.passed[-1]
        outcomes["after"] += 1
        world = run(build(), stream(3, seed=7))
    assert outcomes["before"] > 50
    assert outcomes["after"] >= 1
