"""Data, losses and augmentation as people have them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.unit.learner.support import sgd
from torch import Tensor, nn

from recollect import Learner, Memory, method
from recollect.augment import RandomFlip
from recollect.models import seeded

CLASSES = 3


class Bag(nn.Module):
    """The mean of embedded tokens; 0 is padding."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(30, 6, padding_idx=0)
        self.head = nn.Linear(6, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        count = (tokens != 0).sum(1, keepdim=True).clamp_min(1)
        logits: Tensor = self.head(self.embedding(tokens).sum(1) / count)
        return logits


def texts(step: int) -> tuple[list[list[int]], list[int]]:
    rng = torch.Generator().manual_seed(step)
    labels = torch.randint(CLASSES, (4,), generator=rng).tolist()
    lengths = torch.randint(1, 7, (4,), generator=rng).tolist()
    return [
        (9 * label + 1 + torch.randint(9, (length,), generator=rng)).tolist()
        for label, length in zip(labels, lengths, strict=True)
    ], labels


def learner(name: str = "er", **options: Any) -> Learner:
    model = seeded(Bag, 0)
    return method(name, model, sgd(model), capacity=8, replay=3, seed=0, **options)


def weights(one: Learner) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in one.model.parameters()]


def as_ragged_lists(tokens: list[list[int]]) -> Any:
    return tokens


def as_arrays(tokens: list[list[int]]) -> Any:
    return [np.array(row) for row in tokens]


def as_tensors(tokens: list[list[int]]) -> Any:
    return [torch.tensor(row) for row in tokens]


def as_a_padded_tensor(tokens: list[list[int]]) -> Any:
    return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in tokens], batch_first=True)


@pytest.mark.parametrize("form", [as_ragged_lists, as_arrays, as_tensors, as_a_padded_tensor])
@pytest.mark.parametrize("name", ["er", "er-pc-mir", "gss"])
def test_texts_of_any_length_are_learnt_alike_in_every_form(
    name: str, form: Callable[[list[list[int]]], Any]
) -> None:
    expected, found = learner(name), learner(name)
    for step in range(6):
        tokens, labels = texts(step)
        expected.observe(tokens, labels)
        found.observe(form(tokens), np.array(labels))
    for one, other in zip(weights(expected), weights(found), strict=True):
        torch.testing.assert_close(one, other)
    assert found.predict(form(texts(9)[0])).shape == (4, CLASSES)


@pytest.mark.parametrize("first", [np.int32, np.int64, np.uint8])
def test_classes_may_come_as_whole_numbers_of_any_width(first: type) -> None:
    forms: tuple[Any, ...] = (first, list, np.int16, np.int64, torch.tensor, np.uint16, list)
    expected, found = learner("er-pc"), learner("er-pc")
    for step, form in enumerate(forms):
        tokens, labels = texts(step)
        expected.observe(tokens, labels)
        found.observe(
            tokens, form(labels) if form in (list, torch.tensor) else np.array(labels, form)
        )
    for one, other in zip(weights(expected), weights(found), strict=True):
        assert torch.equal(one, other)


def test_a_class_beyond_the_numbers_that_are_stored_is_refused() -> None:
    model = nn.Linear(2, 300)
    one = method("er", model, sgd(model), capacity=4, replay=2)
    one.observe(torch.zeros(2, 2), np.array([0, 1], np.uint8))
    with pytest.raises(TypeError, match=r"dtype torch.int64 .* holds torch.uint8 .*; pass"):
        one.observe(torch.zeros(2, 2), [299, 1])
    assert one.step == 1


def test_the_memory_keeps_each_text_at_its_own_length() -> None:
    one = learner()
    lengths: dict[int, int] = {}
    for step in range(6):
        tokens, labels = texts(step)
        one.observe(tokens, labels)
        lengths |= {4 * step + i + 1: len(row) for i, row in enumerate(tokens)}
    assert one.memory is not None
    held = [one.memory.slot(index) for index in range(len(one.memory))]
    assert [slot.inputs.numel() for slot in held] == [lengths[slot.arrived_at] for slot in held]  # type: ignore[attr-defined]


def tokenize(sentences: list[str]) -> Tensor:
    rows = [torch.tensor([ord(letter) - 96 for letter in sentence]) for sentence in sentences]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


def test_strings_behind_a_tokenizer_are_stored_replayed_and_predicted() -> None:
    strings, tokens = learner("er-pc", transform=tokenize), learner("er-pc")
    for step in range(6):
        rows, labels = texts(step)
        rows = [[token % 26 + 1 for token in row] for row in rows]
        sentences = ["".join(chr(96 + token) for token in row) for row in rows]
        strings.observe(sentences, labels)
        tokens.observe(rows, labels)
    for one, other in zip(weights(strings), weights(tokens), strict=True):
        torch.testing.assert_close(one, other)
    assert strings.memory is not None
    assert all(isinstance(strings.memory.slot(i).inputs, str) for i in range(8))
    assert strings.predict(["abc", "z"]).shape == (2, CLASSES)


def test_a_collate_of_ones_own_gets_examples_and_may_make_a_mask() -> None:
    class Masked(Bag):
        def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:  # type: ignore[override]
            summed = (self.embedding(tokens) * mask[..., None]).sum(1)
            logits: Tensor = self.head(summed / mask.sum(1, keepdim=True))
            return logits

    def collate(rows: list[Tensor]) -> dict[str, Tensor]:
        mask = nn.utils.rnn.pad_sequence([torch.ones(len(row)) for row in rows], batch_first=True)
        return {"tokens": as_a_padded_tensor([row.tolist() for row in rows]), "mask": mask}

    masked = seeded(Masked, 0)
    one = method("er-p", masked, sgd(masked), capacity=8, replay=3, seed=0, collate=collate)
    other = learner("er-p")
    for step in range(5):
        one.observe(*texts(step))
        other.observe(*texts(step))
    for first, second in zip(weights(one), weights(other), strict=True):
        torch.testing.assert_close(first, second)


def test_images_of_another_size_are_refused_unless_a_collate_says_how() -> None:
    one = learner()
    one.observe(torch.zeros(2, 3, dtype=torch.uint8).long(), [0, 1])
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    images = method("er", model, sgd(model), capacity=4, replay=1)
    images.observe(torch.zeros(2, 4), [0, 1])
    with pytest.raises(ValueError, match=r"shape \(3,\), the memory holds \(4,\)\. .*collate"):
        images.observe(torch.zeros(2, 3), [0, 1])


@pytest.mark.parametrize(
    "loss",
    [
        nn.MSELoss(),
        nn.MSELoss(reduction="none"),
        nn.MSELoss(reduction="sum"),
        lambda outputs, targets: (outputs - targets) ** 2,
        lambda outputs, targets: ((outputs - targets) ** 2).mean(1, keepdim=True),
    ],
)
@pytest.mark.parametrize("name", ["er", "er-p", "er-mir"])
def test_losses_in_every_form_teach_the_same(name: str, loss: Any) -> None:
    def run(loss: Any) -> list[Tensor]:
        model = seeded(lambda: nn.Linear(5, 2), 0)
        one = method(name, model, sgd(model), capacity=8, replay=3, seed=0, loss=loss)
        for step in range(6):
            rng = torch.Generator().manual_seed(step)
            inputs = torch.rand(4, 5, generator=rng)
            one.observe(inputs, inputs[:, :2].numpy())
        return weights(one)

    expected = run(lambda outputs, targets: ((outputs - targets) ** 2).mean(1))
    for found, known in zip(run(loss), expected, strict=True):
        torch.testing.assert_close(found, known)


# --- augmentation ---------------------------------------------------------------------------------


def images(step: int) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(step)
    labels = torch.randint(CLASSES, (4,), generator=rng)
    return torch.rand(4, 1, 2, 5, generator=rng) + labels[:, None, None, None], labels


def convolutional() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 2, 2), nn.Tanh(), nn.Flatten(), nn.Linear(8, CLASSES))


def augmented(name: str, augment: Any, **options: Any) -> Learner:
    model = seeded(convolutional, 0)
    return method(name, model, sgd(model), capacity=8, replay=3, seed=0, augment=augment, **options)


class Noted:
    """Flips everything, and notes what it was given."""

    def __init__(self) -> None:
        self.given: list[Tensor] = []

    def __call__(self, inputs: Tensor) -> Tensor:
        self.given.append(inputs.clone())
        return inputs.flip(-1)


@pytest.mark.parametrize("name", ["er", "er-p", "er-mir", "er-pc-mir", "gss", "er-cb"])
def test_training_sees_changed_images_and_memory_and_predict_the_images_themselves(
    name: str,
) -> None:
    noted = Noted()
    one = augmented(name, noted)
    for step in range(6):
        inputs, labels = images(step)
        one.observe(inputs, labels)
    assert one.memory is not None
    originals = torch.cat([images(step)[0] for step in range(6)])
    for index in range(len(one.memory)):
        slot = one.memory.slot(index)
        assert torch.equal(slot.inputs, originals[slot.arrived_at - 1])  # type: ignore[arg-type]
    calls = len(noted.given)
    expected = one.model(images(0)[0])
    torch.testing.assert_close(one.predict(images(0)[0]), expected.detach())
    assert len(noted.given) == calls


def test_a_flip_of_everything_trains_as_if_the_stream_were_flipped() -> None:
    flipped, plain = augmented("er-p", lambda x: x.flip(-1)), augmented("er-p", None)
    for step in range(6):
        inputs, labels = images(step)
        flipped.observe(inputs, labels)
        plain.observe(inputs.flip(-1), labels)
    for one, other in zip(weights(flipped), weights(plain), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("name", ["er-mir", "er-c", "gss"])
def test_scores_are_those_of_the_images_themselves(name: str) -> None:
    """With a rate of 0 nothing is learnt: scores of changed images alone could tell apart."""
    found, plain = augmented(name, lambda x: x.flip(-1) * 3), augmented(name, None)
    for one in (found, plain):
        for group in one.optimizer.param_groups:
            group["lr"] = 0.0
    for step in range(8):
        first, second = found.observe(*images(step)), plain.observe(*images(step))
        if name != "er-mir":  # what MIR's virtual step moves along is the gradient that trains
            assert first.written_slots.tolist() == second.written_slots.tolist()
        assert not found.memory.margin_increment.any()  # type: ignore[union-attr]


def test_every_update_draws_afresh_and_a_resumed_run_draws_the_same(tmp_path: Any) -> None:
    one = augmented("er", RandomFlip(), iterations=3)
    noted = Noted()
    two = augmented("er", noted, iterations=3)
    two.observe(*images(0))
    assert len(noted.given) == 3
    for step in range(3):
        one.observe(*images(step))
    one.save(tmp_path / "c.ckpt")
    state = torch.get_rng_state()
    other = augmented("er", RandomFlip(), iterations=3)
    other.load(tmp_path / "c.ckpt")
    torch.manual_seed(99)
    for step in range(3, 6):
        torch.rand(1)
        one.observe(*images(step))
    torch.set_rng_state(state)
    for step in range(3, 6):
        other.observe(*images(step))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(a, b) for a, b in zip(weights(one), weights(other), strict=True))


def test_a_memory_with_a_limit_in_bytes_takes_what_fits() -> None:
    model = nn.Linear(10, 2)
    one = Learner(model, sgd(model), memory=Memory(1000, max_bytes=1000))
    for _ in range(10):
        one.observe(torch.rand(4, 10), [0, 1, 0, 1])
    assert one.memory is not None
    assert one.memory.is_full
    assert (len(one.memory), one.memory.nbytes <= 1000) == (12, True)
