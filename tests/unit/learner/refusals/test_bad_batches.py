"""A batch that cannot be learnt from is refused in words, and nothing has changed."""

import pytest
import torch
from tests.unit.learner.refusals.bad_batches import BAD, LEARNERS, MODELS, good, own_loss
from tests.unit.learner.support import differences, fingerprint, sgd
from torch import Tensor, nn
from torch.nn import functional as F

from recollect import Learner, method
from recollect.errors import NonFiniteError

# What a message may be about. Of numbers too large the inner products say it first.
NAMED = ("`inputs`", "`labels`", "the model returned")


def refusal(world: Learner, batch: tuple[object, object]) -> Exception | None:
    """Return the error of a batch that is refused, None if it is learnt from."""
    try:
        world.observe(*batch)
    except Exception as error:
        return error
    return None


@pytest.mark.filterwarnings("ignore")  # torch warns of kinds of tensors that it may drop
@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("kind", MODELS)
def test_what_is_refused_is_refused_in_words_and_changes_nothing(kind: str, name: str) -> None:
    refused, wrong = 0, {}
    world = LEARNERS[name](kind)
    before = fingerprint(world)
    for what, bad in BAD.items():
        error = refusal(world, bad(*good(kind, 9)))
        if error is None:
            world = LEARNERS[name](kind)
            continue
        refused += 1
        named = any(name in str(error) for name in NAMED) or isinstance(error, NonFiniteError)
        if not named or not isinstance(error, ValueError | TypeError):
            wrong[what] = f"{type(error).__name__}: {error}"
        if moved := differences(before, fingerprint(world)):
            wrong[what] = f"moved {moved}"
    assert wrong == {}
    assert refused > 90


def perceptron(width: int = 16) -> nn.Module:
    return nn.Sequential(nn.Linear(width, 8), nn.Tanh(), nn.Linear(8, 4))


def refused_by(model: nn.Module, inputs: object, labels: Tensor | None = None) -> str:
    if labels is None:
        labels = torch.tensor([0, 1, 2])
    error = refusal(Learner(model, sgd(model)), (inputs, labels))
    assert isinstance(error, ValueError | TypeError)
    assert error.__cause__ is not None  # what torch said
    return str(error)


LAYERS: dict[str, tuple[nn.Module, Tensor, str]] = {
    "features": (perceptron(), torch.zeros(3, 15), "layer `0`, Linear.*It takes 16 features"),
    "a deeper layer": (
        nn.Sequential(perceptron(), nn.Linear(5, 4)),
        torch.zeros(3, 16),
        r"layer `1`, Linear.*given torch.float32 of shape \(3, 4\).*It takes 5 features",
    ),
    "bytes": (perceptron(), torch.zeros(3, 16).byte(), r"`lambda x: x / 255` does of images"),
    "doubles": (perceptron(), torch.zeros(3, 16).double(), r"`inputs.to\(torch.float32\)`.*`model"),
    "complex": (perceptron(), torch.zeros(3, 16) + 0j, "real numbers of complex ones"),
    "channels": (
        nn.Sequential(nn.Conv2d(3, 4, 3)),
        torch.zeros(3, 1, 8, 8),
        "4 dimensions: examples, 3 channels, and 2 more",
    ),
    "small images": (
        nn.Sequential(nn.Conv2d(1, 4, 3)),
        torch.zeros(3, 1, 2, 2),
        r"kernel \(3, 3\)",
    ),
    "one value per channel": (
        nn.Sequential(nn.BatchNorm1d(16), perceptron()),
        torch.zeros(1, 16),
        "Pass more examples at a time",
    ),
    "normalised channels": (
        nn.Sequential(nn.BatchNorm1d(16), perceptron()),
        torch.zeros(3, 15),
        "It takes 16 channels",
    ),
    "normalised features": (
        nn.Sequential(nn.LayerNorm(16), perceptron()),
        torch.zeros(3, 15),
        r"It takes \(16,\) in the last dimensions",
    ),
    "tokens too large": (
        nn.Sequential(nn.Embedding(7, 4), nn.Flatten()),
        torch.full((3, 2), 7),
        "Its input holds 7, and it has 7 entries: pass numbers from 0 to 6",
    ),
    "real tokens": (
        nn.Sequential(nn.Embedding(7, 4)),
        torch.zeros(3, 2),
        r"pass `inputs.long\(\)`",
    ),
}


@pytest.mark.parametrize("what", LAYERS)
def test_a_message_names_the_layer_and_what_it_takes(what: str) -> None:
    model, inputs, message = LAYERS[what]
    found = refused_by(model, inputs, torch.arange(3)[: len(inputs)])
    assert f"given `inputs` as {inputs.dtype} of shape {tuple(inputs.shape)}" in found
    with pytest.raises(ValueError, match=message):
        raise ValueError(found)


def test_a_message_names_the_arguments_that_a_model_takes() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = perceptron()

        def forward(self, image: Tensor, text: Tensor) -> Tensor:
            return self.body(image + text)

    found = refused_by(Two(), {"image": torch.zeros(3, 16), "words": torch.zeros(3, 16)})
    assert "'words': torch.float32 of shape (3, 16)}" in found
    assert "Its `forward` takes `image`, `text`" in found


def test_a_message_names_a_transform_and_what_it_was_given() -> None:
    model = perceptron()
    world = Learner(model, sgd(model), transform=lambda x: x.view(-1, 7))
    error = refusal(world, (torch.zeros(3, 16), torch.tensor([0, 1, 2])))
    assert str(error).startswith(
        "`transform`, given `inputs` as torch.float32 of shape (3, 16), failed: shape '[-1, 7]'"
    )
    assert isinstance(error, ValueError)
    assert isinstance(error.__cause__, RuntimeError)


LABELS: dict[str, tuple[Tensor, str]] = {
    "another whole dtype": (torch.tensor([0, 1, 2]).int(), r"pass `labels.long\(\)`"),
    "too large": (torch.tensor([0, 1, 4]), r"`labels` holds 4.*from 0 to 3"),
    "negative": (torch.tensor([0, -3, 2]), r"`labels` holds -3.*from 0 to 3"),
    "complex": (torch.tensor([0, 1, 2]) + 0j, "Pass real labels"),
    "two dimensions": (torch.zeros(3, 2).long(), "Pass labels that it takes"),
}


@pytest.mark.parametrize("what", LABELS)
def test_a_message_names_the_labels_that_a_loss_was_given(what: str) -> None:
    labels, message = LABELS[what]
    model = perceptron()
    error = refusal(Learner(model, sgd(model), loss=own_loss), (torch.zeros(3, 16), labels))
    assert f"`labels` as {labels.dtype} of shape {tuple(labels.shape)}" in str(error)
    with pytest.raises(ValueError, match=message):
        raise error or ValueError


@pytest.mark.parametrize("error", [AssertionError("stop"), UserWarning("stop"), ArithmeticError()])
def test_what_no_batch_explains_is_raised_as_it_is(error: Exception) -> None:
    class Stops(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = perceptron()

        def forward(self, _: Tensor) -> Tensor:
            raise error

    model = Stops()
    assert refusal(Learner(model, sgd(model)), (torch.zeros(3, 16), torch.arange(3))) is error


def test_labels_that_the_memory_has_no_room_for_leave_it_empty() -> None:
    """They take no bytes where they are: all of a row are the same number."""
    model = perceptron()

    def loss(outputs: Tensor, labels: Tensor) -> Tensor:
        return F.mse_loss(outputs, labels[:, :4].float(), reduction="none").mean(1)

    world = method("er", model, sgd(model), capacity=12, replay=4, seed=0, loss=loss)
    before = fingerprint(world)
    labels = torch.zeros(3, 1).long().expand(3, 2**45)
    assert isinstance(refusal(world, (torch.zeros(3, 16), labels)), RuntimeError)
    assert differences(before, fingerprint(world)) == []
    assert refusal(world, (torch.zeros(3, 16), torch.zeros(3, 4))) is None
