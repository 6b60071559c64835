from pathlib import Path

import pytest
import torch

from recollect import Learner, Memory
from recollect.errors import CheckpointError
from recollect.models import mlp, seeded
from recollect.reports.inspection import (
    SavedMemory,
    histogram,
    images_of,
    ranked_slots,
    read_saved_memory,
)


def memory_with(inputs: torch.Tensor, scores: list[float] | None = None) -> SavedMemory:
    memory = Memory(capacity=len(inputs))
    slots = torch.arange(len(inputs))
    memory.write(slots, inputs, torch.zeros(len(inputs), dtype=torch.int64), arrived_at=1)
    if scores is not None:
        memory.score[:] = torch.tensor(scores)
    return SavedMemory(memory, {}, 1)


def test_a_saved_memory_is_read_back(tmp_path: Path) -> None:
    model = seeded(lambda: mlp(4, 3), 0)
    learner = Learner(model, torch.optim.SGD(model.parameters(), lr=0.1), memory=Memory(10))
    learner.observe(torch.zeros(3, 4), torch.tensor([0, 1, 0]))
    learner.save(tmp_path / "one.ckpt")
    for place in (tmp_path / "one.ckpt", tmp_path):
        saved = read_saved_memory(place)
        assert saved.memory.counts_by_class() == {0: 2, 1: 1}
        assert saved.step == 1
        assert "Reservoir" in str(saved.parts["storage"])
        assert saved.ranking == "times replayed"


def test_what_is_no_memory_is_said(tmp_path: Path) -> None:
    model = seeded(lambda: mlp(4, 3), 0)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    Learner(model, sgd).save(tmp_path / "van.ckpt")
    with pytest.raises(CheckpointError, match="without a memory"):
        read_saved_memory(tmp_path / "van.ckpt")
    Learner(model, sgd, memory=Memory(10)).save(tmp_path / "empty.ckpt")
    with pytest.raises(CheckpointError, match="empty memory of 10 slots"):
        read_saved_memory(tmp_path / "empty.ckpt")
    with pytest.raises(CheckpointError, match="does not exist"):
        read_saved_memory(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="folder with 2 checkpoints"):
        read_saved_memory(tmp_path)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        read_saved_memory(tmp_path / "text")


def test_histograms_count_every_value_once() -> None:
    values = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    bins = histogram(values)
    assert sum(b.count for b in bins) == 1000
    for b in bins[:-1]:
        assert b.count == int(((values >= b.low) & (values < b.high)).sum())


def test_whole_numbers_have_whole_borders() -> None:
    bins = histogram(torch.tensor([1, 2, 3, 25]))
    assert all(b.low == int(b.low) for b in bins)
    assert [b.count for b in histogram(torch.tensor([4, 4]))] == [2]


def test_equal_values_are_one_bar() -> None:
    assert [b.count for b in histogram(torch.full((5,), 0.5))] == [5]


def test_the_highest_and_lowest_scores_are_found() -> None:
    saved = memory_with(torch.zeros(6, 4, 4), [0.3, -1.0, 2.0, 0.0, 0.1, -0.5])
    assert ranked_slots(saved, 2) == ([2, 0], [1, 5])


def test_no_slot_is_on_both_sides() -> None:
    saved = memory_with(torch.zeros(3, 4, 4), [1.0, 2.0, 3.0])
    assert ranked_slots(saved, 10) == ([2], [0])


def test_images_are_told_from_other_inputs() -> None:
    assert images_of(memory_with(torch.zeros(2, 784)).memory, [0]) is None
    assert images_of(memory_with(torch.zeros(2, 5, 8, 8)).memory, [0]) is None
    grey = images_of(memory_with(torch.zeros(2, 8, 8, dtype=torch.uint8)).memory, [0])
    assert grey is not None
    assert grey.shape == (1, 8, 8)


def test_floats_are_stretched_over_the_whole_memory() -> None:
    inputs = torch.stack([torch.full((3, 8, 8), -1.0), torch.full((3, 8, 8), 3.0)])
    images = images_of(memory_with(inputs).memory, [0, 1])
    assert images is not None
    assert (float(images[0].min()), float(images[1].max())) == (0.0, 1.0)
