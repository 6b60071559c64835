from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from recollect.objectives import Answers, CrossEntropy
from recollect.objectives.loss import objective_of

RNG = torch.Generator().manual_seed(0)
VECTORS, TARGETS = torch.randn(5, 3, generator=RNG), torch.rand(5, 3, generator=RNG)
CLASSES = torch.tensor([0, 2, 1, 1, 0])

CASES: dict[str, tuple[Callable[[], Callable[[Tensor, Tensor], Tensor]], Tensor, Tensor]] = {
    "mse": (nn.MSELoss, VECTORS, TARGETS),
    "mse, summed": (lambda: nn.MSELoss(reduction="sum"), VECTORS, TARGETS),
    "mse, not reduced": (lambda: nn.MSELoss(reduction="none"), VECTORS, TARGETS),
    "l1 on a column": (nn.L1Loss, VECTORS[:, :1], TARGETS[:, :1]),
    "binary": (nn.BCEWithLogitsLoss, VECTORS, TARGETS),
    "huber": (nn.SmoothL1Loss, VECTORS, TARGETS),
    "smoothed": (lambda: nn.CrossEntropyLoss(label_smoothing=0.1), VECTORS, CLASSES),
    "nll": (nn.NLLLoss, VECTORS.log_softmax(1), CLASSES),
    "a function": (lambda: lambda o, t: F.mse_loss(o, t, reduction="none"), VECTORS, TARGETS),
}


@pytest.mark.parametrize("name", CASES)
def test_every_example_gets_the_mean_loss_it_has_alone(name: str) -> None:
    build, outputs, targets = CASES[name]
    found = objective_of(build())(Answers(outputs, targets, [False] * 5))
    alone = build()
    expected = [alone(outputs[i : i + 1], targets[i : i + 1]).reshape(-1) for i in range(5)]
    divide = outputs[0].numel() if name == "mse, summed" else 1
    torch.testing.assert_close(found, torch.stack([loss.mean() / divide for loss in expected]))


def test_the_loss_that_was_given_stays_as_it_was() -> None:
    given = nn.MSELoss()
    objective_of(given)
    assert given.reduction == "mean"


def test_plain_cross_entropy_is_the_default_and_others_are_not() -> None:
    assert objective_of(nn.CrossEntropyLoss()) == CrossEntropy()
    assert objective_of(nn.CrossEntropyLoss(reduction="sum")) == CrossEntropy()
    assert objective_of(nn.CrossEntropyLoss(weight=torch.ones(3))) != CrossEntropy()
    assert objective_of(None) == CrossEntropy()


def test_ignored_labels_do_not_count_in_an_examples_mean() -> None:
    logits = torch.randn(2, 4, 3, generator=RNG)  # examples, classes, places in a text
    labels = torch.tensor([[1, -100, 2], [-100, -100, -100]])
    each = objective_of(nn.CrossEntropyLoss(label_smoothing=0.0, weight=torch.ones(4)))
    found = each(Answers(logits, labels, [False] * 2))
    kept = F.cross_entropy(logits[:1, :, [0, 2]], labels[:1, [0, 2]])
    torch.testing.assert_close(found, torch.stack([kept, torch.tensor(0.0)]))
