"""A node without a formula: called once per group, on the gradient of that group alone."""

from collections.abc import Sequence
from typing import Any, Final

import torch
from jaxtyping import Int64
from torch import Tensor
from torch.autograd.function import BackwardCFunction

from recollect.gradients.formulas.visit import Visit
from recollect.gradients.groups import Groups
from recollect.gradients.rows.layout import ElementLabels, Layout
from recollect.gradients.share import Share


def replayed(visit: Visit) -> list[Share]:
    """Call the node on masked gradients; it is linear in them, whatever it does.

    Not to be called while the backward pass runs: a node then computes what that pass needs only.
    """
    if visit.node.name() in _ELEMENTWISE and (share := _elementwise(visit)):
        return [share]
    rows: dict[int, list[Tensor]] = {position: [] for position in visit.slots}
    group_of = {
        number: _group_of_each(visit.layouts[number], visit.groups, gradient)
        for number, gradient in enumerate(visit.gradients)
        if gradient is not None and number in visit.layouts
    }
    for group in range(len(visit.groups)):
        masked = [
            None
            if gradient is None
            else gradient.masked_fill(group_of[number] != group, 0)
            if number in group_of
            else torch.zeros_like(gradient)
            for number, gradient in enumerate(visit.gradients)
        ]
        found = called(visit, masked)
        for position, parts in rows.items():
            shape = visit.shape(position)
            gradient = found[position]
            parts.append(
                torch.zeros(shape) if gradient is None else gradient.sum_to_size(shape).clone()
            )
    return [visit.explicit({position: torch.stack(parts) for position, parts in rows.items()})]


_ELEMENTWISE: Final = frozenset(
    {
        "AddcmulBackward0", "AddcdivBackward0", "LerpBackward1", "WhereBackward0", "PowBackward1",
        "MaximumBackward0", "MinimumBackward0", "RsubBackward0", "XlogyBackward0",
    }
)  # fmt: skip
# Nodes that move or add up entries, and do no arithmetic worth a formula.
_MOVE_ROWS: Final = frozenset(
    f"{name}Backward{version}"
    for name in (
        "Cat", "Stack", "Repeat", "Index", "IndexSelect", "Gather", "Sum", "Mean", "Roll", "Flip",
        "ConstantPadNd", "Expand", "Slice", "Select", "Split", "SplitWithSizes", "Unbind", "View",
        "UnsafeView", "ReshapeAlias", "Transpose", "Permute", "T", "Unsqueeze", "Squeeze", "Clone",
        "ToCopy", "Alias", "AsStrided",
    )
    for version in range(3)
)  # fmt: skip
#: Called again without a word: a formula would save next to nothing.
CHEAP: Final = _ELEMENTWISE | _MOVE_ROWS


@torch.no_grad()
def called(visit: Visit, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
    """Call the node, without what autograd does around it: broadcasting is not undone."""
    node = visit.node
    call: Any = node.apply if isinstance(node, BackwardCFunction) else node
    found = call(*gradients)
    return found if isinstance(found, tuple | list) else (found,)


def _group_of_each(layout: Layout, groups: Groups, like: Tensor) -> Int64[Tensor, "..."]:
    """Say for each element which group it belongs to, in a shape that broadcasts."""
    groups_by_example = torch.repeat_interleave(torch.tensor(groups.sizes))
    if isinstance(layout, ElementLabels):
        owners = layout.labels.cpu()
    else:
        shape = [1] * like.ndim
        shape[layout.dim] = -1
        owners = layout.owners().reshape(shape)
    of_each = groups_by_example[owners.clamp(min=0)]
    return of_each.masked_fill(owners < 0, -1).to(like.device)


def _elementwise(visit: Visit) -> Share | None:
    """Call the node once, and undo the broadcasting of each example's part alone."""
    found = called(visit, visit.gradients)
    rows = {}
    for position in visit.slots:
        gradient = found[position]
        if gradient is None or gradient.shape != visit.gradient.shape:
            return None
        summed = visit.summed(gradient, visit.shape(position))
        if summed is None:
            return None
        rows[position] = summed
    return visit.explicit(rows)
