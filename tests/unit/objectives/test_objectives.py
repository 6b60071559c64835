"""Each objective against its equation in NumPy, on digits that pass a real network."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from tests.unit.objectives import written_out
from torch import Tensor, nn

from recollect import benchmark
from recollect.models import mlp, seeded
from recollect.objectives import (
    Answers,
    AsymmetricCrossEntropy,
    CrossEntropy,
    DarkExperience,
    Objective,
    SupervisedContrast,
)


@dataclass(frozen=True)
class Digits:
    """Ten incoming and ten replayed digits of MNIST-S as a network answers them, in float64."""

    incoming: Tensor
    incoming_labels: Tensor
    replayed: Tensor
    replayed_labels: Tensor
    stored: Tensor
    other_view: Tensor
    seen: Tensor

    @property
    def flags(self) -> list[bool]:
        return [False] * len(self.incoming) + [True] * len(self.replayed)

    @property
    def labels(self) -> Tensor:
        return torch.cat((self.incoming_labels, self.replayed_labels))

    def answers(self) -> Answers:
        outputs = torch.cat((self.incoming, self.replayed))
        counts = torch.full((len(self.replayed),), 10)
        columns = {"logits": self.stored, "num_logits": counts}
        return Answers(outputs, self.labels, self.flags, columns, self.seen)


@pytest.fixture(scope="module")
def digits() -> Digits:
    split = benchmark("mnist-split", seed=3)
    batches = list(split.stream)
    model, earlier = (seeded(mlp, seed).double() for seed in (0, 1))

    def answered(net: nn.Module, inputs: Tensor) -> Tensor:
        with torch.no_grad():
            logits: Tensor = net(split.transform(inputs).double())
        return 20 * logits  # far enough apart for every class to count differently

    (x, y), (old, old_y) = batches[210], batches[20]  # digits 4 and 5, and digits 0 and 1
    return Digits(
        *(answered(model, x), y, answered(model, old), old_y, answered(earlier, old)),
        answered(model, torch.cat((x, old)).flip(-1)),
        torch.arange(6),
    )


def numpy(*tensors: Tensor) -> list[Any]:
    return [tensor.numpy() for tensor in tensors]


def test_the_digits_are_of_other_classes_and_the_logits_tell_them_apart(digits: Digits) -> None:
    assert set(digits.incoming_labels.tolist()) == {4, 5}
    assert set(digits.replayed_labels.tolist()) == {0, 1}
    assert digits.incoming.std(0).min() > 0.1


def test_cross_entropy_asks_the_same_of_both(digits: Digits) -> None:
    logits, labels = numpy(digits.answers().outputs, digits.labels)
    expected = written_out.cross_entropy(logits, labels)
    np.testing.assert_allclose(CrossEntropy()(digits.answers()), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("against", "left_out"), [("present", set(range(10))), ("unseen", set(range(6)))]
)
def test_asymmetric_cross_entropy_tells_incoming_examples_from_few_classes(
    against: str, left_out: set[int], digits: Digits
) -> None:
    found = AsymmetricCrossEntropy(against)(digits.answers())  # type: ignore[arg-type]
    z, y, old, old_y = numpy(
        *(digits.incoming, digits.incoming_labels, digits.replayed, digits.replayed_labels)
    )
    expected = written_out.asymmetric(z, y, left_out), written_out.cross_entropy(old, old_y)
    np.testing.assert_allclose(found, np.concatenate(expected), rtol=1e-12)


def test_asymmetric_cross_entropy_does_not_hang_on_the_order_of_labels(digits: Digits) -> None:
    """Two published versions unmask every class above the highest one seen."""
    turned = torch.arange(9, -1, -1)
    answers = digits.answers()
    renumbered = Answers(
        *(answers.outputs[:, turned], 9 - answers.labels, answers.is_replayed),
        classes_seen=9 - digits.seen.flip(0),
    )
    for objective in (AsymmetricCrossEntropy(), AsymmetricCrossEntropy("unseen")):
        torch.testing.assert_close(objective(renumbered), objective(answers))


@pytest.mark.parametrize(("alpha", "beta"), [(0.3, 0.0), (0.5, 1.0), (0.0, 0.0)])
def test_dark_experience_asks_for_the_stored_logits(
    alpha: float, beta: float, digits: Digits
) -> None:
    found = DarkExperience(alpha, beta)(digits.answers())
    z, y, old, old_y, stored = numpy(
        *(digits.incoming, digits.incoming_labels, digits.replayed, digits.replayed_labels),
        digits.stored,
    )
    expected = (
        written_out.cross_entropy(z, y),
        written_out.dark(old, stored, old_y, alpha, beta),
    )
    np.testing.assert_allclose(found, np.concatenate(expected), rtol=1e-12)


def test_dark_experience_asks_nothing_about_classes_that_came_after_storing() -> None:
    stored = {"logits": torch.tensor([[1.0, 2.0, 0.0]]), "num_logits": torch.tensor([2])}
    answers = Answers(torch.tensor([[1.0, 4.0, 9.0]]), torch.tensor([0]), [True], stored)
    assert DarkExperience(alpha=1.0)(answers).tolist() == [2.0]  # (0 + 4) / 2
    unknown = {**stored, "num_logits": torch.tensor([0])}
    assert DarkExperience(alpha=1.0)(Answers(*_three(answers), unknown)).tolist() == [0.0]


def _three(answers: Answers) -> tuple[Tensor, Tensor, list[bool]]:
    return answers.outputs, answers.labels, list(answers.is_replayed)


@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_supervised_contrast_compares_two_views_of_everything(
    temperature: float, digits: Digits
) -> None:
    first = digits.answers().outputs
    answers = Answers(torch.cat((first, digits.other_view)), digits.labels, digits.flags, views=2)
    found = SupervisedContrast(temperature)(answers)
    one, other, labels = numpy(first, digits.other_view, digits.labels)
    expected = written_out.contrast(one, other, labels, temperature)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


# --- beside a package -----------------------------------------------------------------------------


def test_er_ace_is_avalanches_but_for_its_half(digits: Digits) -> None:
    losses = AsymmetricCrossEntropy("present")(digits.answers())
    count = len(digits.incoming)
    ours = losses[:count].mean() + losses[count:].mean()
    theirs = written_out.avalanche_er_ace(
        *numpy(digits.incoming, digits.incoming_labels, digits.replayed, digits.replayed_labels)
    )
    assert float(ours) == pytest.approx(2 * theirs, rel=1e-12)


@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 0.5), (0.3, 0.0)])
def test_der_is_avalanches(alpha: float, beta: float, digits: Digits) -> None:
    losses = DarkExperience(alpha, beta)(digits.answers())
    count = len(digits.incoming)
    ours = losses[:count].mean() + losses[count:].mean()
    theirs = written_out.avalanche_der(
        digits.incoming.numpy(),
        digits.incoming_labels.numpy(),
        digits.replayed.numpy(),
        digits.replayed_labels.numpy(),
        digits.stored.numpy(),
        alpha,
        beta,
    )
    assert float(ours) == pytest.approx(theirs, rel=1e-12)


_SEEN: Any = "seen"


# --- bad options ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (
            lambda: AsymmetricCrossEntropy(_SEEN),
            r"`against` is 'seen'; choose 'present' or",
        ),
        (lambda: DarkExperience(alpha=-1.0), r"`alpha` is -1.0; pass a number from 0 up"),
        (lambda: DarkExperience(beta=True), r"`beta` is True; pass a number from 0 up"),
        (lambda: SupervisedContrast(0.0), r"`temperature` is 0.0; pass a number above 0"),
    ],
)
def test_options_that_mean_nothing_are_refused(build: Callable[[], Objective], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        build()


def test_contrast_of_what_is_no_projection_is_refused() -> None:
    with pytest.raises(TypeError, match=r"end the model with `recollect.models.with_projection`"):
        SupervisedContrast()(Answers(torch.zeros(2, 1), torch.tensor([0]), [False], views=2))
