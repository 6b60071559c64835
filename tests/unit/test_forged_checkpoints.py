"""A checkpoint that was forged and signed again is refused, or leaves a learner that can go on."""

import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.flipping import PARTS, silent_flips
from tests.unit.learner.support import (
    differences,
    fingerprint,
    learner,
    model,
    run,
    sgd,
    stream,
)
from tests.unit.trying_forgeries import FORGERIES, NUM_PARTS, try_forgeries
from torch import Tensor, nn
from typing_extensions import override

from recollect import Learner, Memory
from recollect.errors import CheckpointError
from recollect.models import seeded
from recollect.storage import Placement, Storage


@pytest.mark.slow
@pytest.mark.parametrize("part", range(NUM_PARTS))
def test_no_forged_checkpoint_is_half_loaded_or_raises_anything_else_or_leaves_nonsense(
    part: int, tmp_path: Path
) -> None:
    outcome = try_forgeries(part, tmp_path)
    assert [*outcome.half_loaded, *outcome.raw, *outcome.nonsense] == []
    # Some change nothing that could be told: another weight.
    assert 0 < outcome.accepted < FORGERIES // 2


@pytest.mark.parametrize("part", PARTS)
def test_no_flipped_bit_of_a_checkpoint_passes(part: int, tmp_path: Path) -> None:
    run(learner("er-cb", "batch norm"), stream(4)).save(tmp_path / "it")
    victim = learner("er-cb", "batch norm")

    def load() -> dict[str, object]:
        victim.load(tmp_path / "it")
        return fingerprint(victim)

    assert silent_flips(tmp_path / "it", part, load, CheckpointError) == []


# --- what is honest is taken ----------------------------------------------------------------------


class Masked(nn.Module):
    """Holds infinities, as the mask of an attention does."""

    def __init__(self) -> None:
        super().__init__()
        self.body = model()
        self.register_buffer("mask", torch.full((2, 2), -torch.inf).triu(1))

    @override
    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.body(inputs)
        return logits


def test_infinities_that_the_model_has_itself_are_taken(tmp_path: Path) -> None:
    def build() -> Learner:
        net = seeded(Masked, 0)
        return Learner(net, sgd(net), memory=Memory(10))

    run(build(), stream(2)).save(tmp_path / "it")
    build().load(tmp_path / "it")


def test_what_a_scheduler_adds_and_lowers_is_taken_before_there_is_one(tmp_path: Path) -> None:
    world, other = learner("er"), learner("er")
    torch.optim.lr_scheduler.StepLR(world.optimizer, 1)
    world.optimizer.param_groups[0]["lr"] = 1e-9
    world.save(tmp_path / "it")
    other.load(tmp_path / "it")
    assert other.optimizer.param_groups[0]["initial_lr"] == 0.1
    assert other.optimizer.param_groups[0]["lr"] == 1e-9


class Picky(torch.optim.SGD):
    """Steps where there is something to step along, and takes no copy for itself."""

    @override
    def step(self, closure: Any = None) -> Any:
        gradients = [p.grad for group in self.param_groups for p in group["params"]]
        if not any(g is not None and bool(g.any()) for g in gradients):
            raise RuntimeError("no gradient")
        return super().step(closure)


def test_an_optimizer_that_cannot_be_tried_is_taken_untried(tmp_path: Path) -> None:
    def build() -> Learner:
        net = model()
        return Learner(net, Picky(net.parameters(), lr=0.1, momentum=0.9), memory=Memory(10))

    run(build(), stream(2)).save(tmp_path / "it")
    build().load(tmp_path / "it")


def test_a_learner_that_cannot_be_copied_is_taken_untried(tmp_path: Path) -> None:
    def build() -> Learner:
        net = model()
        net.lock = threading.Lock()  # type: ignore[assignment]
        return Learner(net, sgd(net), memory=Memory(10))

    run(build(), stream(2)).save(tmp_path / "it")
    other = build()
    other.load(tmp_path / "it")
    assert other.step == 2


def test_a_memory_in_half_precision_is_taken_outside_the_autocast_it_is_learnt_in(
    tmp_path: Path,
) -> None:
    def build() -> Learner:
        net = model()
        return Learner(net, sgd(net), memory=Memory(10))

    world = build()
    with torch.autocast("cpu"):
        run(world, [(inputs.bfloat16(), labels) for inputs, labels in stream(2)])
    world.save(tmp_path / "it")
    build().load(tmp_path / "it")


# --- what is not, is not --------------------------------------------------------------------------


class Forgetful(Storage):
    """Reads back what it never wrote, after it has begun."""

    def __init__(self) -> None:
        self.count = 0

    @override
    def place(self, labels: Tensor, memory: Memory, evidence: Any, rng: Any) -> Placement:
        self.count += len(labels)
        return Placement(torch.full((len(labels),), -1))

    @override
    def state(self) -> dict[str, Tensor]:
        return {"count": torch.tensor(self.count)}

    @override
    def restore(self, state: Any) -> None:
        self.count = -1
        self.count = int(state["counts"])


def test_a_storage_that_cannot_be_restored_leaves_the_learner_as_it_was(tmp_path: Path) -> None:
    def build() -> Learner:
        net = model()
        return Learner(net, sgd(net), memory=Memory(10), storage=Forgetful())

    run(build(), stream(4)).save(tmp_path / "it")
    world = run(build(), stream(2, seed=1))
    before = fingerprint(world)
    with pytest.raises(CheckpointError, match=r"a part of the learner cannot take .*\(KeyError"):
        world.load(tmp_path / "it")
    assert differences(before, fingerprint(world)) == []


def test_a_learner_that_could_not_go_on_does_not_take_the_place_of_one_that_can(
    tmp_path: Path,
) -> None:
    world = run(learner("er"), stream(2))
    world.save(tmp_path / "it")
    whole = (tmp_path / "it").read_bytes()
    with torch.no_grad():
        next(world.model.parameters()).view(-1)[0] = torch.nan
    with pytest.raises(CheckpointError, match=r"cannot be saved, .*`1.weight` .* is as it was"):
        world.save(tmp_path / "it")
    assert (tmp_path / "it").read_bytes() == whole


def test_statistics_that_overflowed_are_not_saved(tmp_path: Path) -> None:
    world = run(learner("er", "batch norm"), stream(2))
    world.model.get_buffer("1.running_var").fill_(torch.inf)
    with pytest.raises(CheckpointError, match="`running_var` of `1` holds NaN or infinite values"):
        world.save(tmp_path / "it")
