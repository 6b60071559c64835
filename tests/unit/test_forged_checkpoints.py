"""A checkpoint that was forged and signed again is refused, or leaves a learner that can go on."""

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.flipping import PARTS, silent_flips
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
from recollect.storage import ConfidenceReservoir, Placement, Storage

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


@pytest.mark.slow
@pytest.mark.parametrize("part", range(NUM_PARTS))
def test_no_forged_checkpoint_is_half_loaded_or_raises_anything_else_or_leaves_nonsense(
    part: int, tmp_path: Path
) -> None:
    kind = [*BUILDERS][part % len(BUILDERS)]
    build, forged = BUILDERS[kind], tmp_path / "forged"
    world = build()
    run(world, batches(kind, 4)).save(tmp_path / "honest")
    forger = Forger(tmp_path / "honest", part)
    victim = run(build(), batches(kind, 3, seed=1))
    before, found, accepted = fingerprint(victim), [], 0
    for _ in range(FORGERIES):
        what = forger.forge(forged)
        try:
            victim.load(forged)
        except CheckpointError:
            moved = differences(before, fingerprint(victim))
            found += [f"half loaded ({', '.join(moved[:3])}): {what}"] if moved else []
            continue
        except Exception as error:
            found.append(f"raw {type(error).__name__}: {error}: {what}")
        else:
            accepted += 1
            wrong = nonsense(victim, kind, tmp_path / "again")
            found += [f"nonsense ({wrong}): {what}"] if wrong else []
        victim = run(build(), batches(kind, 3, seed=1))
    assert found == []
    assert 0 < accepted < FORGERIES // 2  # some change nothing that could be told: another weight


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
