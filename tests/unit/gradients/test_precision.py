"""Under BatchNorm, float32 loses no more digits than the pass itself does."""

import copy

import pytest
import torch
from tests.unit.gradients.measuring import measured, network
from torch import Tensor, nn
from torch.nn import functional as F

from recollect.gradients import gram_of

EXAMPLES, CHANNELS, CLASSES = 20, 3, 5


class FarFromZero(nn.Module):
    """Maps whose mean may be far from zero, normalised; the scale is trained.

    Weights of the convolution are large, so their gradients are tiny: inner products are those of
    the scale.
    """

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(CHANNELS, CHANNELS, 1, bias=False)
        with torch.no_grad():
            nn.init.dirac_(self.conv.weight).mul_(2**20)
        self.norm = nn.BatchNorm2d(CHANNELS)
        self.head = nn.Linear(CHANNELS * 100, CLASSES)
        for frozen in (self.norm.bias, self.head.weight, self.head.bias):
            frozen.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.norm(self.conv(x))).flatten(1))


def written_out(model: FarFromZero, inputs: Tensor, labels: Tensor) -> Tensor:
    """Give each example a scale of its own: autograd finds what each contributes."""
    normalised = F.batch_norm(model.conv(inputs), None, None, training=True)
    scales = torch.ones(EXAMPLES, CHANNELS, 1, 1, dtype=inputs.dtype, requires_grad=True)
    logits = model.head(torch.tanh(normalised * scales).flatten(1))
    loss = F.cross_entropy(logits, labels, reduction="sum")
    return gram_of(torch.autograd.grad(loss / EXAMPLES, scales))


def distance(found: Tensor, exact: Tensor) -> float:
    return float((found.double() - exact).norm() / exact.norm())


@pytest.mark.parametrize("mean", [0, 10, 100, 1000])
def test_inner_products_are_as_exact_as_those_of_gradients_written_out(mean: int) -> None:
    """In float32, maps of deviation one at `mean` are rounded by the pass itself: the yardstick."""
    ours, theirs = [], []
    for seed in range(5):
        torch.manual_seed(seed)
        model = FarFromZero()
        inputs = torch.randn(EXAMPLES, CHANNELS, 10, 10) + mean
        labels = torch.randint(CLASSES, (EXAMPLES,))
        exact = written_out(copy.deepcopy(model).double(), inputs.double(), labels)
        owner = network(model)
        for _ in range(2):  # once to find out how, and once as every later pass is measured
            # Contributions to a mean, times the number of examples: see `Network.measure`.
            found = measured(owner, inputs, labels).gram() / EXAMPLES**2
        ours.append(distance(found, exact))
        theirs.append(distance(written_out(model, inputs, labels), exact))
    assert sum(ours) <= 3 * sum(theirs)
