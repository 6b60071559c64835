"""Texts, names, new classes, augmentation, weights, ids and a limit in bytes, all at once.

Each has tests of its own; here every method meets all of them, with a step that fails and a resume.
"""

import random
import zlib
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.learner.support import OPTIONS, differences, fingerprint
from torch import Tensor, nn
from typing_extensions import override

from recollect import METHODS, LabelMap, Learner, Memory, method
from recollect.learner.report import StepReport
from recollect.models import seeded, with_growing_head


class Topics(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(200, 8, padding_idx=0)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(8, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.head(self.drop(self.words(tokens).mean(1)))
        return logits


class Fuse:
    """What fails in the next step: the augmentation, or the optimizer behind its step."""

    lit = ""


class Breakable(torch.optim.Adam):
    fuse: Fuse

    @override
    def step(self, *given: Any) -> Any:
        super().step(*given)
        if self.fuse.lit == "optimizer":
            raise RuntimeError("the optimizer is broken")


def tokens(texts: list[str]) -> Tensor:
    rows = [[1 + zlib.crc32(word.encode()) % 199 for word in text.split()] for text in texts]
    return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)


def batch(step: int) -> tuple[list[str], list[tuple[str, int]]]:
    """Five texts of one to nine words; every third step brings a new topic."""
    drawn = random.Random(step)
    topics = [("topic", drawn.randint(0, 1 + step // 3)) for _ in range(5)]
    texts = [
        " ".join(f"{number}{drawn.choice('abcdef')}" for _ in range(drawn.randint(1, 9)))
        for _, number in topics
    ]
    return texts, topics


def build(name: str, fuse: Fuse) -> Learner:
    def forgetful(ids: Tensor) -> Tensor:
        kept = ids.where(torch.rand(ids.shape) > 0.2, 0)
        if fuse.lit == "augmentation":
            raise RuntimeError("the augmentation is broken")
        return kept

    def parts() -> tuple[nn.Module, torch.optim.Optimizer]:
        model = seeded(lambda: with_growing_head(Topics()), 0)
        optimizer = Breakable(model.parameters(), lr=0.01)
        optimizer.fuse = fuse
        return model, optimizer

    options = {**OPTIONS.get(name, {}), "transform": tokens, "augment": forgetful, "iterations": 2}
    row = method(name, *parts(), capacity=12, replay=4, seed=3, label_map=LabelMap(), **options)
    if row.memory is None:
        return row
    return Learner(
        *parts(),
        memory=Memory(40, max_bytes=2500),
        storage=row.storage,
        retrieval=row.retrieval,
        rule=row.rule,
        objective=row.objective,
        predictor=row.predictor,
        label_map=LabelMap(),
        transform=tokens,
        augment=forgetful,
        iterations=2,
        passes=row.passes,
        seed=3,
    )


def observe(one: Learner, step: int) -> StepReport:
    ids = [f"{step}/{number}" for number in range(5)]
    return one.observe(*batch(step), ids=ids, weights=[1, 2, 0.5, 0, 3.0])


def everything(one: Learner) -> dict[str, object]:
    found = fingerprint(one)
    assert one.label_map is not None
    assert one.head is not None
    found["classes"], found["width"] = one.label_map.labels, one.head.out_features
    if one.memory is not None:
        found["ids"], found["capacity"] = one.memory.ids(), one.memory.capacity
    return found


@pytest.mark.parametrize("name", METHODS)
def test_saved_and_loaded_at_every_step_nothing_is_different(name: str, tmp_path: Path) -> None:
    one, two = build(name, Fuse()), build(name, Fuse())
    for step in range(9):
        two.save(tmp_path / "c.ckpt")
        two = build(name, Fuse())
        two.load(tmp_path / "c.ckpt")
        for each in (one, two):
            observe(each, step)
            if step == 4 and each.memory is not None:
                each.memory.forget(slots=[1])
        assert differences(everything(one), everything(two)) == []
    assert one.head is not None
    assert one.head.out_features == 4


@pytest.mark.parametrize("broken", ["augmentation", "optimizer"])
@pytest.mark.parametrize("name", METHODS)
def test_a_step_that_fails_leaves_everything_as_it_was(name: str, broken: str) -> None:
    fuse = Fuse()
    one = build(name, fuse)
    for step in range(4):
        observe(one, step)
        before = everything(one)
        fuse.lit = broken
        with pytest.raises((RuntimeError, ValueError), match=f"the {broken} is broken"):
            one.observe(["new words", "a"], ["new", ("topic", 0)], ids=["n1", "n2"], weights=[1, 2])
        fuse.lit = ""
        assert differences(before, everything(one)) == []


@pytest.mark.parametrize("name", METHODS)
def test_predict_leaves_everything_as_it_was(name: str) -> None:
    one = build(name, Fuse())
    for step in range(4):
        observe(one, step)
        before = everything(one)
        one.predict(["0a 0b", "1c"])
        assert differences(before, everything(one)) == []
