"""`check_retrieval` lets sound policies pass and says of broken ones what is broken."""

import random
import re
from typing import ClassVar

import pytest
import torch
from torch import Tensor
from typing_extensions import override

from recollect.memory import Memory
from recollect.retrieval import Probe, Retrieval, Uniform
from recollect.testing import check_retrieval


class OldestFirst(Retrieval):
    """Sound: the slots stored longest ago. The broken ones below start from it."""

    replay = 4

    @override
    def select(self, memory: Memory, probe: Probe, rng: torch.Generator) -> Tensor:
        return memory.ages().argsort(descending=True, stable=True)[: self.replay]


class HighestLoss(Retrieval):
    """Sound: asks about every slot."""

    replay = 3

    @override
    def select(self, memory: Memory, probe: Probe, rng: torch.Generator) -> Tensor:
        losses = probe.losses_before(torch.arange(len(memory)))
        return losses.argsort(descending=True)[: self.replay]


@pytest.mark.parametrize("build", [OldestFirst, HighestLoss, lambda: Uniform(1)])
def test_sound_policies_pass(build: type[Retrieval]) -> None:
    check_retrieval(build)


class TorchsGlobalGenerator(OldestFirst):
    @override
    def select(self, memory: Memory, probe: Probe, rng: torch.Generator) -> Tensor:
        return torch.randperm(len(memory))[: self.replay]


class PythonsGlobalGenerator(OldestFirst):
    @override
    def select(self, memory: Memory, probe: Probe, rng: torch.Generator) -> Tensor:
        random.random()
        return super().select(memory, probe, rng)


class WithReplacement(OldestFirst):
    @override
    def select(self, memory: Memory, probe: Probe, rng: torch.Generator) -> Tensor:
        return torch.randint(len(memory), (min(self.replay, len(memory)),), generator=rng)


class EmptySlots(OldestFirst):
    @override
    def select(self, memory: Memory, probe: Probe, rng: torch.Generator) -> Tensor:
        return torch.arange(memory.capacity).flip(0)[: min(self.replay, len(memory))]


class TooFew(OldestFirst):
    @override
    def select(self, memory: Memory, probe: Probe, rng: torch.Generator) -> Tensor:
        return super().select(memory, probe, rng)[:2]


class TooMany(OldestFirst):
    @override
    def select(self, memory: Memory, probe: Probe, rng: torch.Generator) -> Tensor:
        return torch.arange(len(memory))


class Mask(OldestFirst):
    @override
    def select(self, memory: Memory, probe: Probe, rng: torch.Generator) -> Tensor:
        return torch.arange(len(memory)) < self.replay


class MarksWhatItReplays(OldestFirst):
    @override
    def select(self, memory: Memory, probe: Probe, rng: torch.Generator) -> Tensor:
        slots = super().select(memory, probe, rng)
        memory.mark_replayed(slots)
        return slots


class InTurn(OldestFirst):
    """Remembers where it stopped, which no checkpoint knows."""

    def __init__(self) -> None:
        self.next = 0

    @override
    def select(self, memory: Memory, probe: Probe, rng: torch.Generator) -> Tensor:
        count = min(self.replay, len(memory))
        slots = torch.arange(self.next, self.next + count) % len(memory)
        self.next = (self.next + count) % len(memory)
        return slots


class OwnSeed(OldestFirst):
    made: ClassVar[list[int]] = []

    def __init__(self) -> None:
        self.made.append(0)
        self.seed = len(self.made)

    @override
    def select(self, memory: Memory, probe: Probe, rng: torch.Generator) -> Tensor:
        own = torch.Generator().manual_seed(self.seed)
        return torch.randperm(len(memory), generator=own)[: self.replay]


class ProbesEmptySlots(HighestLoss):
    @override
    def select(self, memory: Memory, probe: Probe, rng: torch.Generator) -> Tensor:
        return probe.losses_after(torch.arange(memory.capacity)).argsort()[: self.replay]


class NeedsMany(OldestFirst):
    @override
    def select(self, memory: Memory, probe: Probe, rng: torch.Generator) -> Tensor:
        return memory.ages().topk(self.replay).indices


class NoReplay(OldestFirst):
    replay = 0


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (TorchsGlobalGenerator, "drew from a global generator in `select`"),
        (PythonsGlobalGenerator, "drew from a global generator in `select`"),
        (WithReplacement, "returned a slot twice"),
        (EmptySlots, "filled are 0 to"),
        (TooFew, "returned 2 slots on a memory with 3 of 3 slots filled; return 3"),
        (TooMany, "return 4"),
        (Mask, "returned torch.bool (1,) for the slots to replay"),
        (MarksWhatItReplays, "changed the memory in `select`"),
        (InTurn, "chose differently after having been used"),
        (OwnSeed, "chose differently from the same generator"),
        (ProbesEmptySlots, "asked for the losses of slots"),
        (NeedsMany, "raised RuntimeError in `select` on a memory with 1 of 1 slots filled"),
        (NoReplay, "has `replay` = 0"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_broken_policy_is_found_out(broken: type[Retrieval], complaint: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(complaint)):
        check_retrieval(broken)


def test_an_instance_instead_of_a_function_is_refused() -> None:
    with pytest.raises(TypeError, match=r"`build` is Uniform\(replay=3\); pass a function"):
        check_retrieval(Uniform(3))  # type: ignore[arg-type]


def test_a_function_that_makes_something_else_is_refused() -> None:
    with pytest.raises(TypeError, match="`build` made 3; make an instance"):
        check_retrieval(lambda: 3)  # type: ignore[arg-type,return-value]
