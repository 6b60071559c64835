"""Interrupt what a learner does at every line, and tell what that leaves."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from tests.unit.learner.support import Batch, differences, fingerprint, learner, run, sgd, stream
from tests.unit.learner.undo.raising import Tracer, every_line
from torch import nn

from recollect import METHODS, Learner


def momentum(net: nn.Module) -> torch.optim.Optimizer:
    return sgd(net, momentum=0.9, weight_decay=0.01)


def adam(net: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(net.parameters(), lr=0.01, amsgrad=True)


def two_groups(net: nn.Module) -> torch.optim.Optimizer:
    first, *rest = net.parameters()
    groups: list[dict[str, Any]] = [{"params": rest, "lr": 0.1}, {"params": [first]}]
    return torch.optim.SGD(groups, lr=0.05)


OPTIMIZERS: dict[str, Callable[[nn.Module], torch.optim.Optimizer]] = {
    "sgd": sgd,
    "two groups": two_groups,
    "momentum": momentum,
    "adam": adam,
}


def everything(world: Learner) -> dict[str, object]:
    """A learner's fingerprint, and what a step switches or hangs on a model on its way."""
    found = fingerprint(world)
    found["gradients are on"] = torch.is_grad_enabled()
    found["whose turn"] = world._turns.are_taken
    found["who waits"] = world._turns.are_wanted
    found["autocast"] = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
    for name, tensor in [*world.model.named_parameters(), *world.model.named_buffers()]:
        found[f"place of {name}"] = tensor.data_ptr()
    for name, module in world.model.named_modules():
        found[f"hooks of {name}"] = len(module._forward_hooks), len(module._backward_hooks)
    if world.memory is not None:
        for column in ("stored_at", "times_replayed", "margin_increment", "score"):
            found[column] = getattr(world.memory, column).tolist()
    return found


@dataclass
class Outcomes:
    """What interrupts left: counts, and all that was neither before nor after."""

    before: int = 0
    after: int = 0
    mixed: list[object] = field(default_factory=list)


def without_places(found: dict[str, object]) -> dict[str, object]:
    """Another learner's tensors lie elsewhere."""
    return {name: value for name, value in found.items() if not name.startswith("place of ")}


def interrupt(
    world: Learner,
    action: Callable[[Learner], object],
    at: Callable[..., list[int]] = every_line,
    **options: bool,
) -> Outcomes:
    """Interrupt an action at each of these events, and compare with before and after."""
    pristine, twin = copy.deepcopy(world), copy.deepcopy(world)
    events = at(lambda: action(twin), **options)
    after = without_places(everything(twin))
    world, outcomes = copy.deepcopy(pristine), Outcomes()
    before = everything(world)
    for event in events:
        tracer = Tracer(event, **options)
        try:
            with tracer.watching():
                action(world)
        except KeyboardInterrupt:
            pass
        found = everything(world)
        if not (unlike_before := differences(before, found)):
            outcomes.before += 1
            continue
        if not (unlike_after := differences(after, without_places(found))):
            outcomes.after += 1
        else:
            outcomes.mixed.append((tracer.passed[-1], unlike_before, unlike_after))
        world = copy.deepcopy(pristine)
        before = everything(world)
    return outcomes


def observing(batch: Batch) -> Callable[[Learner], object]:
    return lambda world: world.observe(*batch)


def in_mid_stream(name: str, kind: str, optimizer: str, **options: Any) -> tuple[Learner, Batch]:
    """A learner whose memory is full, and a batch some of which it will store."""
    *earlier, last = stream(5)
    return run(learner(name, kind, optimizer=OPTIMIZERS[optimizer], **options), earlier), last


def optimizer_of(name: str) -> str:
    """Name an optimizer that remembers something; methods take them by turns."""
    return ("two groups", "momentum", "adam")[list(METHODS).index(name) % 3]
