"""One way to measure gradients, shared by tests that hold whatever engine there is to account."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from recollect.gradients import Measurement, gram_of, one_by_one
from recollect.network.batch import Batch
from recollect.network.network import Network
from recollect.objectives.loss import objective_of

Loss = Callable[[Tensor, Tensor], Tensor]


def network(model: nn.Module, *, loss: Loss | None = None) -> Network:
    """Join a model with an optimizer that holds all of its parameters."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return Network(model, optimizer, objective=objective_of(loss), transform=None)


def measured(owner: Network, inputs: Tensor, labels: Tensor, *, incoming: int = 0) -> Measurement:
    """Measure the incoming examples' mean gradient and those of all others, one by one."""
    found = owner.measure(Batch(inputs, labels), incoming=incoming).gradients
    assert isinstance(found, Measurement)
    return found


def oracle(
    model: nn.Module,
    inputs: Tensor,
    labels: Tensor,
    *,
    incoming: int = 0,
    loss: Loss | None = None,
) -> dict[str, Tensor]:
    """Find the same gradients with one backward pass per example, written out by name."""
    loss = loss or cross_entropy
    rows = one_by_one(loss(model(inputs), labels), dict(model.named_parameters()))
    if not incoming:
        return rows
    return {
        name: torch.cat((found[:incoming].mean(0, keepdim=True), found[incoming:]))
        for name, found in rows.items()
    }


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Return one loss per example."""
    return F.cross_entropy(logits, labels, reduction="none")


def assert_equal(found: Measurement, rows: dict[str, Tensor], *, rtol: float = 1e-9) -> None:
    """Compare the inner products and a weighted sum with gradients that are written out."""
    gram = gram_of(list(rows.values()))
    torch.testing.assert_close(found.gram(), gram, rtol=rtol, atol=rtol * _largest(gram))
    row = torch.stack((gram[0], gram.diagonal()))
    torch.testing.assert_close(found.row(), row, rtol=rtol, atol=rtol * _largest(gram))
    along = {name: written[-1] for name, written in rows.items()}
    products = found.products_with(along)
    torch.testing.assert_close(products, gram[-1], rtol=rtol, atol=rtol * _largest(gram))
    weights = torch.linspace(-1, 2, len(gram), dtype=gram.dtype)
    combined = found.combine(weights)
    for name, written in rows.items():
        expected = torch.tensordot(weights, written, 1)
        got = combined.get(name, torch.zeros_like(expected))
        atol = rtol * _largest(written)
        torch.testing.assert_close(got, expected, rtol=rtol, atol=atol, msg=name)


def assert_equals_the_oracle(
    owner: Network,
    batches: Sequence[tuple[Tensor, Tensor]],
    *,
    incoming: int = 0,
    loss: Loss | None = None,
    rtol: float = 1e-9,
) -> None:
    """Check pass after pass, since what one pass finds out may be kept for those behind it."""
    for inputs, labels in batches:
        rows = oracle(owner.model, inputs, labels, incoming=incoming, loss=loss)
        assert_equal(measured(owner, inputs, labels, incoming=incoming), rows, rtol=rtol)


def _largest(values: Tensor) -> float:
    return float(values.abs().max())
