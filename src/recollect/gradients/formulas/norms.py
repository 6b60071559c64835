"""Normalisations: per-example gradients of their scale and shift are small sums."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from recollect.gradients.formulas.table import formula
from recollect.gradients.formulas.visit import Visit
from recollect.gradients.precision import as_precise_as
from recollect.gradients.share import Share


@formula("NativeLayerNormBackward0")
def layer_norm(visit: Visit) -> Sequence[Share] | None:
    """Each position is normalised over its own last dimensions."""
    a, d = _precise(visit, *visit.slots)
    mean, inverse_deviation = visit.saved("result1"), visit.saved("result2")
    return _scale_and_shift(visit, d, lambda: (a - mean) * inverse_deviation, (1, 2))


@formula("NativeGroupNormBackward0")
def group_norm(visit: Visit) -> Sequence[Share] | None:
    """Each example's channels are normalised in groups."""
    a, d = _precise(visit, *visit.slots)
    groups, eps = visit.saved("group"), visit.saved("eps")
    return _scale_and_shift(visit, d, lambda: F.group_norm(a, groups, eps=eps), (1, 2))


@formula("NativeBatchNormBackward0")
def batch_norm(visit: Visit) -> Sequence[Share] | None:
    """Channels are normalised over the batch.

    In training mode these are contributions to the batch's gradient (note P8): the statistics
    belong to the whole batch.
    """
    layout = visit.rows_layout
    if layout is None or layout.dim == 1:
        return None
    a, d = _precise(visit, *visit.slots)
    if not visit.saved("training"):
        mean, variance = visit.saved("running_mean"), visit.saved("running_var")
        eps = visit.saved("eps")
        return _scale_and_shift(
            visit, d, lambda: F.batch_norm(a, mean, variance, training=False, eps=eps), (1, 2)
        )
    rows = {}
    if 1 in visit.slots:
        mean, inverse_deviation = visit.saved("result1"), visit.saved("result2")
        # The mean is taken off before the sum: products with it cancel only in the end, and as
        # many digits are lost as mean / deviation has.
        centred = a - mean.reshape(-1, *[1] * (a.ndim - 2))
        rows[1] = _by_channel(visit, centred.mul_(d)) * inverse_deviation
    if 2 in visit.slots:
        rows[2] = _by_channel(visit, d)
    return [visit.explicit(rows)]


def _scale_and_shift(
    visit: Visit, d: Tensor, normalised: Callable[[], Tensor], positions: tuple[int, int]
) -> Sequence[Share] | None:
    """Share of y = weight * normalised(a) + bias: sums of d * normalised(a), and of d."""
    rows: dict[int, Tensor] = {}
    for position in positions:
        if position not in visit.slots:
            continue
        products = d * normalised() if position == positions[0] else d
        shape = visit.shape(position)
        if visit.node.name() != "NativeLayerNormBackward0":  # channels are in dimension 1
            shape = torch.Size((*shape, *[1] * (d.ndim - 2)))
        summed = visit.summed(products, shape)
        if summed is None:
            return None
        rows[position] = summed.reshape(-1, *visit.shape(position))
    return [visit.explicit(rows)]


def _by_channel(visit: Visit, values: Tensor) -> Tensor:
    """Sum over positions, then over the examples of each group."""
    layout = visit.rows_layout
    assert layout is not None
    by_row = values.flatten(2).sum(2) if values.ndim > 2 else values
    return visit.groups.sum(layout.arranged(by_row, 0).sum(1))


def _precise(visit: Visit, *positions: int) -> tuple[Tensor, Tensor]:
    return as_precise_as(visit.dtype(positions[0]), visit.saved("input"), visit.gradient)
