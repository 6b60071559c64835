"""Parameters that are broadcast: scales, shifts, tokens, positions, slopes of PReLU."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import torch
from torch import Tensor

from recollect.gradients.formulas.table import formula
from recollect.gradients.formulas.visit import Visit
from recollect.gradients.rows.layout import Regular
from recollect.gradients.share import Share

Derivative = Callable[[Visit, Tensor], Tensor]


def _times(visit: Visit, d: Tensor, name: str) -> Tensor:
    return d * visit.saved(name).to(d.dtype)


def _divided(visit: Visit, d: Tensor) -> Tensor:
    divisor = visit.saved("other").to(d.dtype)
    return -d * visit.saved("self").to(d.dtype) / divisor.square()


def _slope(visit: Visit, d: Tensor) -> Tensor:
    given = visit.saved("self").to(d.dtype)
    return torch.where(given > 0, given.new_zeros(()), given * d)


# Gradient at each input in the shape of the output, before broadcasting is undone.
_DERIVATIVES: Final[Mapping[str, Mapping[int, Derivative]]] = {
    "AddBackward0": {0: lambda _, d: d, 1: lambda v, d: d * v.saved("alpha")},
    "SubBackward0": {0: lambda _, d: d, 1: lambda v, d: -d * v.saved("alpha")},
    "MulBackward0": {0: lambda v, d: _times(v, d, "other"), 1: lambda v, d: _times(v, d, "self")},
    "DivBackward0": {0: lambda v, d: d / v.saved("other").to(d.dtype), 1: _divided},
    "PreluKernelBackward0": {1: _slope},
}


@formula(*_DERIVATIVES)
def elementwise(visit: Visit) -> Sequence[Share] | None:
    """Gradients in the shape of the output, added up per example in that of the parameter."""
    known = _DERIVATIVES[visit.node.name()]
    rows = {}
    for position in visit.slots:
        if position not in known:
            return None
        d = visit.gradient.to(_finer(visit, position))
        summed = visit.summed(known[position](visit, d), visit.shape(position))
        if summed is None:
            return None
        rows[position] = summed
    return [visit.explicit(rows)]


@formula("ExpandBackward0")
def expand(visit: Visit) -> Sequence[Share] | None:
    """A token that was given to every example."""
    rows = visit.summed(visit.gradient.to(_finer(visit, 0)), visit.shape(0))
    return None if rows is None else [visit.explicit({0: rows})]


@formula("RepeatBackward0")
def repeat(visit: Visit) -> Sequence[Share] | None:
    """A copy for every example, as an instance normalisation makes of its weights."""
    layout, repeats = visit.rows_layout, visit.saved("repeats")
    shape = visit.shape(0)
    if not isinstance(layout, Regular) or layout.outer > 1 or len(repeats) != len(shape):
        return None
    copies = [visit.groups.num_examples if d == layout.dim else 1 for d in range(len(shape))]
    if list(repeats) != copies:
        return None
    by_example = layout.arranged(visit.gradient.to(_finer(visit, 0))).movedim(1, layout.dim + 1)
    return [visit.explicit({0: visit.groups.sum(by_example)})]


def _finer(visit: Visit, position: int) -> torch.dtype:
    return torch.promote_types(visit.gradient.dtype, visit.dtype(position))
