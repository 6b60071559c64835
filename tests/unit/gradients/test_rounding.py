"""Rounding is told from a mistake by what is compared, at any scale."""

from itertools import islice

import pytest
import torch
from tests.unit.gradients.measuring import (
    Loss,
    assert_equals_the_oracle,
    cross_entropy,
    measured,
    network,
)
from torch import Tensor, nn
from torch.nn import functional as F

from recollect import benchmark, method

SCALES = [1e-12, 1e-6, 1.0, 1e6]


def bias_in_front_of_batch_norm() -> nn.Module:
    """Build a model in which the gradient of the first bias is zero, but for rounding."""
    return nn.Sequential(
        nn.Conv2d(1, 4, 5), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 24 * 24, 10)
    )


@pytest.mark.parametrize("passes", ["joint", "separate"])
@pytest.mark.parametrize("seed", range(10))
def test_a_bias_in_front_of_batch_norm_is_no_reason_to_refuse_a_model(
    seed: int, passes: str
) -> None:
    torch.manual_seed(seed)
    model = bias_in_front_of_batch_norm()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    learner = method("er-p", model, optimizer, capacity=100, replay=10, seed=0, passes=passes)
    for inputs, labels, *_ in islice(benchmark("mnist-split", seed=seed).stream, 2):
        learner.observe(inputs.reshape(-1, 1, 28, 28) / 255, labels)
    assert learner.step == 2


def scaled(by: float) -> Loss:
    return lambda logits, labels: by * cross_entropy(logits, labels)


@pytest.mark.parametrize("examples", [1, 2, 20])
@pytest.mark.parametrize("scale", SCALES)
def test_that_bias_is_measured_whatever_the_scale_of_the_loss(scale: float, examples: int) -> None:
    for seed in range(5):
        torch.manual_seed(seed)
        owner = network(bias_in_front_of_batch_norm(), loss=scaled(scale))
        inputs, labels = torch.rand(examples, 1, 28, 28), torch.randint(10, (examples,))
        found = measured(owner, inputs, labels).gram().detach()
        # All contributions together are the gradient of the mean loss, times their number.
        losses = scaled(scale)(owner.model(inputs), labels)
        total = torch.autograd.grad(losses.sum(), list(owner.model.parameters()))
        length = sum(gradient.double().square().sum() for gradient in total)
        assert float(found.double().sum() / length) == pytest.approx(1, abs=1e-4)


class UsedOutside(nn.Module):
    """A weight that is used in its layer and outside of it, where no layer is called."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(5, 4), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.linear(torch.tanh(self.body(x)), self.body.weight.T))


@pytest.mark.parametrize(("dtype", "rtol"), [(torch.float32, 1e-4), (torch.float64, 1e-9)])
@pytest.mark.parametrize("scale", SCALES)
def test_a_use_outside_of_the_layer_is_noticed_whatever_the_scale_of_the_loss(
    scale: float, dtype: torch.dtype, rtol: float
) -> None:
    torch.manual_seed(0)
    owner = network(UsedOutside().to(dtype), loss=scaled(scale))
    passes = [(torch.randn(6, 5, dtype=dtype), torch.randint(3, (6,))) for _ in range(2)]
    assert_equals_the_oracle(owner, passes, loss=scaled(scale), rtol=rtol)
