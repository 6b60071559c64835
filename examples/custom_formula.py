"""A formula of your own: per-example gradients of an operation that recollect does not know.

Run it: python examples/custom_formula.py
Without the formula the operation works just as well, only slower, and one warning names it.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from recollect import method
from recollect.gradients import Visit, formula
from recollect.gradients.share import Share
from recollect.testing import check_formula


class Wave(torch.autograd.Function):
    """x sin(w), with a backward pass written by hand."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
        ctx.save_for_backward(x, w)
        return x * w.sin()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        (x, w), (d,) = ctx.saved_tensors, gradients
        return d * w.sin(), (d * x * w.cos()).sum(0)


@formula("WaveBackward")
def wave(visit: Visit) -> Sequence[Share] | None:
    """The backward pass for input 1, before it adds up the examples."""
    x, w = visit.node.saved_tensors  # type: ignore[attr-defined]
    rows = visit.summed(visit.gradient * x * w.cos(), w.shape)
    return None if rows is None else [visit.explicit({1: rows})]


class Waves(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale, self.head = nn.Parameter(torch.rand(8)), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(Wave.apply(x, self.scale))  # type: ignore[no-untyped-call]


def main() -> None:
    torch.manual_seed(0)
    check_formula("WaveBackward", wave, Waves(), torch.randn(6, 8))
    model = Waves()
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    learner = method("er-p", model, sgd, capacity=50, replay=10, seed=0)
    for _ in range(50):
        labels = torch.randint(4, (10,))
        learner.observe(torch.randn(10, 8) + 2 * torch.eye(8)[labels], labels)
    print("the formula is exact, and ER-P learnt with it")


if __name__ == "__main__":
    main()
