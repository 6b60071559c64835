"""The imitation of the MIR authors' learner does what their code was read to do."""

from math import log

import pytest
import torch
from studies.mir.learner import (
    OURS,
    SCRIPT,
    STEPS,
    THEIRS,
    build,
    learners_table,
    misread_share,
    segments_by_argmax,
)
from studies.mir.parts import BatchReservoir, EarlierSegments, OldLogits
from torch import Tensor

import recollect
from recollect.memory import Memory
from recollect.storage.storage import Evidence


def filled(capacity: int, *, seen: int | None = None) -> Memory:
    memory = Memory(capacity)
    labels = torch.arange(capacity) % 2
    arrived_at = torch.arange(1, capacity + 1)
    inputs = torch.arange(capacity).float()[:, None]
    memory.write(torch.arange(capacity), inputs, labels, arrived_at=arrived_at)
    memory.seen = capacity if seen is None else seen
    return memory


class Told:
    """A probe whose losses after the step are those that the test says."""

    def __init__(self, after: list[float]) -> None:
        self._after = torch.tensor(after)

    def losses_before(self, slots: Tensor) -> Tensor:
        return torch.zeros(len(slots))

    def losses_after(self, slots: Tensor) -> Tensor:
        return self._after[slots]

    def note(self, column: str, slots: Tensor, values: Tensor) -> None:
        raise AssertionError(f"{column} was not declared: {slots}, {values}")


@pytest.mark.parametrize("step", STEPS, ids=" ".join)
def test_every_learner_starts_from_the_same_weights_and_stream(step: tuple[str, str]) -> None:
    built, learner, _ = build(*step, seed=5)
    ours, first, _ = build("er", OURS, seed=5)
    inputs, labels = next(built.stream)
    assert all(map(torch.equal, next(ours.stream), (inputs, labels)))
    assert all(map(torch.equal, learner.model.parameters(), first.model.parameters()))


@pytest.mark.parametrize("method", ["er", "er-mir"])
def test_ours_is_the_method_of_the_library(method: str) -> None:
    built, learner, _ = build(method, OURS, seed=1)
    model = built.model()
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    same = recollect.method(method, model, sgd, seed=1, transform=built.transform)
    for _ in range(12):
        inputs, labels = next(built.stream)
        learner.observe(inputs, labels)
        same.observe(inputs, labels)
    assert all(map(torch.equal, learner.model.parameters(), model.parameters()))


@pytest.mark.parametrize("name", ["earlier", THEIRS, SCRIPT])
def test_nothing_of_the_current_segment_is_replayed(name: str) -> None:
    built, learner, _ = build("er-mir", name, seed=2)
    assert learner.memory is not None
    assert isinstance(learner.retrieval, EarlierSegments)
    stream = iter(built.stream)
    for _ in range(3):
        assert not learner.observe(*next(stream)).updates[0].replayed_slots.numel()
    learner.retrieval.end_segment(learner.memory)
    for _ in range(3):
        replayed = learner.observe(*next(stream)).updates[0].replayed_slots
        assert len(replayed) == 10
        assert int(learner.memory.arrived_at[replayed].max()) <= 30


def test_a_batch_reservoir_admits_with_the_count_from_before_the_batch() -> None:
    # After ten of ten, draws are below ten: all of the next ten enter. A reservoir that counts
    # each newcomer admits the twentieth example with probability 10 / 20.
    memory, rng = filled(10), torch.Generator().manual_seed(0)
    evidence: Evidence = None  # type: ignore[assignment]
    placed = BatchReservoir().place(torch.zeros(10), memory, evidence, rng)
    assert bool((placed.slots >= 0).all())
    memory.seen = 1000
    placed = BatchReservoir().place(torch.zeros(20_000), memory, evidence, rng)
    assert (placed.slots >= 0).double().mean().item() == pytest.approx(0.01, abs=0.003)


def test_old_logits_are_read_by_place_among_earlier_segments_not_by_slot() -> None:
    memory = filled(4)
    old = OldLogits(4, 2, lambda inputs: torch.tensor([[3.0, 0.0]]).expand(len(inputs), 2))  # type: ignore[arg-type]
    slots, rows = torch.tensor([3, 1]), torch.tensor([2, 1])
    # Labels 1 and 1: the loss now is log(1 + e^3), nothing noted is log 2, which is lower.
    assert old.lowest_losses(memory, slots, rows).tolist() == pytest.approx([log(2), log(2)])
    assert (old.num_read, old.num_misread) == (2, 1)
    # Label 0 of slot 2: the loss now is lower, and is noted in row 1.
    lower = old.lowest_losses(memory, torch.tensor([2]), torch.tensor([1]))
    assert lower.tolist() == pytest.approx([log(1 + torch.e**-3)])
    # Slot 0, of label 0 too, is compared with the logits of slot 2 when it stands in row 1.
    other = OldLogits(4, 2, lambda inputs: torch.zeros(len(inputs), 2))  # type: ignore[arg-type]
    other._table[:] = old._table
    lower = other.lowest_losses(memory, torch.tensor([0]), torch.tensor([1]))
    assert lower.tolist() == pytest.approx([log(1 + torch.e**-3)])


def test_candidates_are_of_earlier_segments_and_the_most_interfered_of_them_are_replayed() -> None:
    memory = filled(6)
    retrieval = EarlierSegments(2, candidates=4)
    rng = torch.Generator().manual_seed(0)
    probe = Told([0.1, 0.2, 0.3, 0.4, 9.0, 9.0])
    assert retrieval.select(memory, probe, rng).tolist() == []
    memory.seen = 4  # the last two slots are of the segment that comes now
    retrieval.end_segment(memory)
    memory.seen = 6
    assert sorted(retrieval.select(memory, probe, rng).tolist()) == [2, 3]


def test_a_split_at_the_first_of_equal_values_loses_class_nine() -> None:
    labels = torch.arange(10).repeat(7)
    assert segments_by_argmax(labels) == [{0}, {1, 2}, {3, 4}, {5, 6}, {7, 8}]


def test_the_table_compares_pairs_of_the_same_seed() -> None:
    def row(name: str, seed: int, right: int) -> dict[str, object]:
        correct = [[right, 0], [right, right]]
        counts = {"correct": correct, "total": [10, 10]}
        return {"method": "er", "learner": name, "seed": seed, **counts}

    rows = [row(OURS, 0, 5), row(OURS, 1, 7), row(OURS, 2, 1), row(THEIRS, 0, 6), row(THEIRS, 1, 8)]
    lines = learners_table(rows).splitlines()
    assert lines[2].startswith("| ER | ours | 3 | 43.3 ")
    assert "| 2 | 70.0 ± 14.1 | 0.0 ± 0.0 | \N{MINUS SIGN}10.0 [" in lines[4]
    rows = [{"num_read": 200, "num_misread": 190}, {"num_read": 100, "num_misread": 98}]
    assert misread_share(rows).endswith("another slot: 95 to 98 % (2 runs).")
