"""`check_storage` lets sound policies pass and says of broken ones what is broken."""

import re
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor
from typing_extensions import override

from recollect.memory import Memory
from recollect.storage import Evidence, MarginTiming, Placement, Reservoir, Storage
from recollect.testing import check_storage


class FirstComeFirstServed(Storage):
    """Sound: fill the memory, then turn everybody away. The broken ones below start from it."""

    @override
    def place(
        self, labels: Tensor, memory: Memory, evidence: Evidence, rng: torch.Generator
    ) -> Placement:
        slots = torch.arange(len(memory), len(memory) + len(labels))
        slots[slots >= memory.capacity] = -1
        return Placement(self.spoil(slots, labels, memory, evidence))

    def spoil(
        self,
        slots: Tensor,
        labels: Tensor,  # noqa: ARG002
        memory: Memory,  # noqa: ARG002
        evidence: Evidence,  # noqa: ARG002
    ) -> Tensor:
        return slots


class RoundRobin(Storage):
    """Sound and with state: newcomers take the slots in turn."""

    def __init__(self) -> None:
        self.next = torch.zeros((), dtype=torch.int64)

    @override
    def place(
        self, labels: Tensor, memory: Memory, evidence: Evidence, rng: torch.Generator
    ) -> Placement:
        start = int(self.next) if memory.is_full else len(memory)
        slots = torch.arange(start, start + len(labels)) % memory.capacity
        self.next = (slots[-1] + 1) % memory.capacity
        return Placement(slots)

    @override
    def state(self) -> dict[str, Tensor]:
        return {"next": self.next.clone()}

    @override
    def restore(self, state: Mapping[str, Tensor]) -> None:
        self.next = state["next"].clone()


@pytest.mark.parametrize("build", [FirstComeFirstServed, RoundRobin, Reservoir])
def test_sound_policies_pass(build: type[Storage]) -> None:
    check_storage(build)


class TorchsGlobalGenerator(FirstComeFirstServed):
    @override
    def spoil(self, slots: Tensor, labels: Tensor, memory: Memory, evidence: Evidence) -> Tensor:
        return torch.where(torch.rand(len(slots)) < 2, slots, -1)


class NumpysGlobalGenerator(FirstComeFirstServed):
    @override
    def admit(self, labels: Tensor, memory: Memory, rng: torch.Generator) -> Tensor:
        np.random.rand()  # noqa: NPY002 - what the check is for
        return torch.arange(len(labels))


class WritesToTheMemory(FirstComeFirstServed):
    @override
    def spoil(self, slots: Tensor, labels: Tensor, memory: Memory, evidence: Evidence) -> Tensor:
        memory.score.add_(1)
        return slots


class ChangesLabels(FirstComeFirstServed):
    @override
    def spoil(self, slots: Tensor, labels: Tensor, memory: Memory, evidence: Evidence) -> Tensor:
        labels.add_(1)
        return slots


class BeyondTheMemory(FirstComeFirstServed):
    @override
    def spoil(self, slots: Tensor, labels: Tensor, memory: Memory, evidence: Evidence) -> Tensor:
        return torch.arange(len(memory), len(memory) + len(labels))


class FreeSlotsFromTheEnd(FirstComeFirstServed):
    @override
    def spoil(self, slots: Tensor, labels: Tensor, memory: Memory, evidence: Evidence) -> Tensor:
        return torch.where(slots < 0, slots, memory.capacity - 1 - slots + len(memory))


class OneSlotTooFew(FirstComeFirstServed):
    @override
    def spoil(self, slots: Tensor, labels: Tensor, memory: Memory, evidence: Evidence) -> Tensor:
        return slots[1:]


class RealSlots(FirstComeFirstServed):
    @override
    def spoil(self, slots: Tensor, labels: Tensor, memory: Memory, evidence: Evidence) -> Tensor:
        return slots.float()


class BreaksOnLargeBatches(FirstComeFirstServed):
    @override
    def spoil(self, slots: Tensor, labels: Tensor, memory: Memory, evidence: Evidence) -> Tensor:
        return slots[torch.randperm(memory.capacity)[len(labels) - 1] * 0 :]


class AdmitsBackwards(FirstComeFirstServed):
    @override
    def admit(self, labels: Tensor, memory: Memory, rng: torch.Generator) -> Tensor:
        return torch.arange(len(labels)).flip(0)


class UndeclaredMargins(FirstComeFirstServed):
    @override
    def spoil(self, slots: Tensor, labels: Tensor, memory: Memory, evidence: Evidence) -> Tensor:
        evidence.margin_increments()
        return slots


class CosinesOfEmptySlots(FirstComeFirstServed):
    @override
    def spoil(self, slots: Tensor, labels: Tensor, memory: Memory, evidence: Evidence) -> Tensor:
        evidence.cosines(torch.arange(memory.capacity).unsqueeze(0))
        return slots


class UndeclaredClasses(FirstComeFirstServed):
    @override
    def spoil(self, slots: Tensor, labels: Tensor, memory: Memory, evidence: Evidence) -> Tensor:
        memory.counts_by_class()
        return slots


class OwnGenerator(FirstComeFirstServed):
    """Its own generator is seeded anew, and differently, in every instance."""

    seeds: ClassVar[list[int]] = []

    def __init__(self) -> None:
        self.seeds.append(len(self.seeds))
        self.own = torch.Generator().manual_seed(len(self.seeds))

    @override
    def spoil(self, slots: Tensor, labels: Tensor, memory: Memory, evidence: Evidence) -> Tensor:
        turned_away = torch.rand(len(slots), generator=self.own) < 0.5
        return torch.where(turned_away & (slots >= 0).flip(0).all(), -1, slots).sort().values


class LoyalToTheFirstClasses(FirstComeFirstServed):
    """Remembers, and does not tell, which classes came first."""

    def __init__(self) -> None:
        self.first: set[float] = set()

    @override
    def spoil(self, slots: Tensor, labels: Tensor, memory: Memory, evidence: Evidence) -> Tensor:
        self.first = self.first or set(labels.tolist())
        if not memory.is_full:
            return slots
        return torch.tensor([0 if label in self.first else -1 for label in labels.tolist()])


class ForgottenState(RoundRobin):
    @override
    def state(self) -> dict[str, Tensor]:
        return {}

    @override
    def restore(self, state: Mapping[str, Tensor]) -> None:
        pass


class LiveState(RoundRobin):
    """Hands out the very tensor it goes on changing."""

    @override
    def place(
        self, labels: Tensor, memory: Memory, evidence: Evidence, rng: torch.Generator
    ) -> Placement:
        live = self.next
        placement = super().place(labels, memory, evidence, rng)
        self.next = live.copy_(self.next)
        return placement

    @override
    def state(self) -> dict[str, Tensor]:
        return {"next": self.next}

    @override
    def restore(self, state: Mapping[str, Tensor]) -> None:
        self.next = state["next"]


class StateOfNumbers(RoundRobin):
    @override
    def state(self) -> dict[str, Tensor]:
        return {"next": int(self.next)}  # type: ignore[dict-item]


class BareSlots(FirstComeFirstServed):
    @override
    def place(
        self, labels: Tensor, memory: Memory, evidence: Evidence, rng: torch.Generator
    ) -> Placement:
        return torch.full((len(labels),), -1)  # type: ignore[return-value]


class UnfinishedScores(FirstComeFirstServed):
    margins: MarginTiming = "insertion"

    @override
    def place(
        self, labels: Tensor, memory: Memory, evidence: Evidence, rng: torch.Generator
    ) -> Placement:
        return Placement(torch.full((len(labels),), -1), scores=evidence.margin_increments().log())


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (TorchsGlobalGenerator, "drew from a global generator in `admit` and `place`"),
        (NumpysGlobalGenerator, "drew from a global generator in `admit` and `place`"),
        (WritesToTheMemory, "changed the memory in `admit` and `place`"),
        (ChangesLabels, "changed the labels it was given in `place`"),
        (BeyondTheMemory, "they run from -1 to 0"),
        (FreeSlotsFromTheEnd, "the next free one is"),
        (OneSlotTooFew, "placed 0 of 1 newcomers"),
        (RealSlots, "returned torch.float32 (1,) for the slots of newcomers"),
        (BreaksOnLargeBatches, "raised IndexError in `admit` and `place`"),
        (AdmitsBackwards, "return distinct indices of the batch, ascending"),
        (UndeclaredMargins, "asked for margin increments though its `margins` is 'never'"),
        (CosinesOfEmptySlots, "pass batches of filled slots"),
        (UndeclaredClasses, "if it needs classes, say `needs_classes`"),
        (OwnGenerator, "decided differently from the same generator"),
        (LoyalToTheFirstClasses, "differently in a new instance that took its state back"),
        (ForgottenState, "decided differently after a step was undone"),
        (LiveState, "decided differently after a step was undone"),
        (StateOfNumbers, "checkpoints hold named tensors"),
        (BareSlots, "return a `Placement`"),
        (UnfinishedScores, "returned `scores`"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_broken_policy_is_found_out(broken: type[Storage], complaint: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(complaint)):
        check_storage(broken)


def test_the_complaint_names_the_policy() -> None:
    with pytest.raises(AssertionError, match=r"WritesToTheMemory.* changed the memory"):
        check_storage(WritesToTheMemory)


def test_an_instance_instead_of_a_function_is_refused() -> None:
    with pytest.raises(TypeError, match=r"`build` is Reservoir\(\); pass a function that makes"):
        check_storage(Reservoir())  # type: ignore[arg-type]


def test_a_function_that_makes_something_else_is_refused() -> None:
    with pytest.raises(TypeError, match="`build` made 3; make an instance"):
        check_storage(lambda: 3)  # type: ignore[arg-type,return-value]
