"""A memory limited in bytes holds to it, and treats examples of one size alike."""

import pytest
import torch
from tests.unit.learner.support import sgd
from torch import Tensor, nn

from recollect import Learner, Memory
from recollect.models import seeded
from recollect.ragged import Ragged
from recollect.retrieval import Uniform
from recollect.storage import ClassBalanced, ConfidenceReservoir, Reservoir, Storage

POLICIES = {"reservoir": Reservoir, "crs": ConfidenceReservoir, "class balanced": ClassBalanced}
PER_SLOT = 8 + 3 * 8 + 2 * 4  # label and columns


class Sums(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(1, 3)

    def forward(self, values: Tensor) -> Tensor:
        logits: Tensor = self.head(values.sum(1, keepdim=True) / 100)
        return logits


def learner(storage: Storage, slots: int, room: int, *, seed: int = 0) -> Learner:
    model = seeded(Sums, 0)
    memory = Memory(slots, max_bytes=slots * PER_SLOT + room)
    return Learner(
        model, sgd(model), memory=memory, storage=storage, retrieval=Uniform(2), seed=seed
    )


def batch(step: int, longest: int) -> tuple[Ragged, Tensor]:
    """Examples whose values are all their number in the stream."""
    rng = torch.Generator().manual_seed(step)
    lengths = torch.randint(1, longest + 1, (3,), generator=rng).tolist()
    rows = [torch.full((n,), float(3 * step + i + 1)) for i, n in enumerate(lengths)]
    return Ragged(rows), torch.randint(3, (3,), generator=rng)


@pytest.mark.parametrize("name", POLICIES)
def test_the_limit_holds_after_every_step_and_no_example_is_mixed_up(name: str) -> None:
    one = learner(POLICIES[name](), 20, 160)
    memory = one.memory
    assert memory is not None
    assert memory.max_bytes is not None
    labels: dict[int, int] = {}
    capacities = []
    for step in range(40):
        inputs, expected = batch(step, 12)
        labels |= {3 * step + i + 1: int(label) for i, label in enumerate(expected)}
        report = one.observe(inputs, expected)
        assert memory.nbytes <= memory.max_bytes
        capacities.append(memory.capacity)
        for index in range(len(memory)):
            slot = memory.slot(index)
            assert set(slot.inputs.tolist()) == {float(slot.arrived_at)}  # type: ignore[attr-defined]
            assert int(slot.label) == labels[slot.arrived_at]
        for slot_index, example in zip(
            report.written_slots.tolist(), report.written.examples.tolist(), strict=True
        ):
            assert int(memory.arrived_at[slot_index]) == 3 * step + example + 1
    assert capacities[-1] < 20
    assert capacities == sorted(capacities, reverse=True)


def test_an_example_that_would_not_fit_alone_is_learnt_and_not_stored() -> None:
    one = learner(Reservoir(), 10, 100)
    one.observe(Ragged([torch.ones(1), torch.ones(2)]), [0, 1])
    before = [parameter.clone() for parameter in one.model.parameters()]
    one.observe(Ragged([torch.ones(1000)]), [2])
    assert one.memory is not None
    assert one.memory.ids() == [1, 2]
    changed = [not torch.equal(a, b) for a, b in zip(before, one.model.parameters(), strict=True)]
    assert any(changed)


def observed(one: Learner, steps: int, *, longest: int = 12) -> Memory:
    memory = one.memory
    assert memory is not None
    assert memory.max_bytes is not None
    for step in range(steps):
        one.observe(*batch(step, longest))
        assert memory.nbytes <= memory.max_bytes
    return memory


def test_slots_that_hold_nothing_yet_give_way_to_examples() -> None:
    """So many slots that their columns alone would take all the bytes."""
    model = seeded(Sums, 0)
    one = Learner(model, sgd(model), memory=Memory(1000, max_bytes=2000), retrieval=Uniform(2))
    memory = observed(one, 60)
    held = sum(memory.bytes_by_slot()) + len(memory) * PER_SLOT
    assert memory.is_full
    assert held > 0.9 * 2000


def test_a_first_batch_that_does_not_fit_leaves_room_for_the_next() -> None:
    one = learner(Reservoir(), 10, 100)
    one.observe(Ragged([torch.ones(1000), torch.ones(2000)]), [0, 1])
    memory = one.memory
    assert memory is not None
    assert (len(memory), memory.capacity) == (0, 10)
    one.observe(Ragged([torch.ones(1), torch.ones(2)]), [0, 1])
    assert memory.ids() == [3, 4]


@pytest.mark.parametrize("name", POLICIES)
def test_an_example_too_large_drives_nobody_out(name: str) -> None:
    one = learner(POLICIES[name](), 5, 100)
    memory = observed(one, 10, longest=4)
    before, count = set(memory.ids()), len(memory)
    for _ in range(20):
        report = one.observe(Ragged([torch.ones(1000)]), [2])
        assert report.written_slots.numel() == 0
        assert report.written.evicted_ids == []
    assert (set(memory.ids()), len(memory)) == (before, count)


@pytest.mark.parametrize("first", [0, 11], ids=["from the first step", "later"])
@pytest.mark.parametrize("name", POLICIES)
def test_weights_of_examples_count_as_bytes_and_cost_no_more_than_they_take(
    name: str, first: int
) -> None:
    model = seeded(lambda: nn.Linear(4, 3), 0)
    memory = Memory(100, max_bytes=2000)
    one = Learner(
        model, sgd(model), memory=memory, storage=POLICIES[name](), retrieval=Uniform(2), seed=0
    )
    rng = torch.Generator().manual_seed(0)
    for step in range(40):
        weights = [1.0, 2.0, 1.0] if step >= first else None
        inputs, labels = torch.randn(3, 4, generator=rng), torch.randint(3, (3,), generator=rng)
        one.observe(inputs, labels, weights=weights)
        assert memory.nbytes <= 2000
    assert memory.capacity == 2000 // (PER_SLOT + 4 * 4 + 4)
    assert memory.is_full


@pytest.mark.slow
def test_examples_of_one_size_are_kept_equally_often() -> None:
    streams, length = 600, 30
    counts = torch.zeros(length)
    for seed in range(streams):
        room_for_five = 5 * (PER_SLOT + 8)
        one = learner(Reservoir(), 12, room_for_five - 12 * PER_SLOT, seed=seed)
        for _ in range(length // 3):
            one.observe(Ragged([torch.ones(2), torch.ones(2), torch.ones(2)]), [0, 1, 2])
        assert one.memory is not None
        assert len(one.memory) == 5
        counts[one.memory.arrived_at[:5] - 1] += 1
    share = 5 / length
    z = (counts - streams * share) / (streams * share * (1 - share)) ** 0.5
    assert float(z.abs().max()) < 5.5  # 30 numbers: beyond that once in 10^6 runs
