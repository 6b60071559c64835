"""Where each example's part of a tensor lies."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import final

import torch
from jaxtyping import Bool, Int64
from torch import Tensor


@final
@dataclass(frozen=True)
class Regular:
    """Dimension `dim` counts `outer` times `examples` times `inner` entries, in this order.

    Examples first: `outer` is 1 and `inner` the positions that were folded into the dimension.
    Sequence first: `inner` is 1.
    """

    dim: int
    outer: int
    examples: int
    inner: int

    def owners(self) -> Int64[Tensor, " entries"]:
        """Say for each entry of the dimension which example it belongs to."""
        return (torch.arange(self.outer * self.examples * self.inner) // self.inner) % self.examples

    def arranged(self, tensor: Tensor, dim: int | None = None) -> Tensor:
        """Return `tensor` as (examples, positions, other dimensions).

        Args:
            tensor: Any that lies in memory order like the one this layout was found for.
            dim: Its dimension that counts examples, if it is another one.
        """
        at = self.dim if dim is None else dim
        if at > 0:
            tensor = tensor.movedim(at, 0)
        rest = tensor.shape[1:]
        if self.outer == 1:
            return tensor.reshape(self.examples, self.inner, *rest)
        cut = tensor.reshape(self.outer, self.examples, self.inner, *rest)
        return cut.transpose(0, 1).reshape(self.examples, self.outer * self.inner, *rest)


@final
@dataclass(frozen=True, eq=False)
class RowLabels:
    """Each entry of dimension `dim` belongs to one example, in no regular order.

    `labels` is -1 where the gradient is zero, and it does not matter whose it is.
    """

    dim: int
    examples: int
    labels: Int64[Tensor, " entries"]

    def owners(self) -> Int64[Tensor, " entries"]:
        """Say for each entry of the dimension which example it belongs to."""
        return self.labels

    @cached_property
    def _places(self) -> tuple[Int64[Tensor, "examples positions"], Bool[Tensor, " places"]]:
        """Which entry stands at each place, and whether one does."""
        order = torch.argsort(self.labels, stable=True)
        order = order[int((self.labels < 0).sum()) :]
        sizes = torch.bincount(self.labels[order], minlength=self.examples)
        positions = torch.arange(int(sizes.max()))
        taken = positions < sizes[:, None]
        places = torch.zeros(taken.shape, dtype=torch.int64)
        places[taken] = order
        return places, taken.flatten()

    def arranged(self, tensor: Tensor, dim: int | None = None) -> Tensor:
        """Return `tensor` as (examples, positions, other dimensions), zero where there is none."""
        places, taken = self._places
        at = self.dim if dim is None else dim
        rows = tensor.movedim(at, 0).index_select(0, places.flatten().to(tensor.device))
        is_taken = taken.to(tensor.device).reshape(-1, *[1] * (rows.ndim - 1))
        kept = rows.where(is_taken, rows.new_zeros(()))
        return kept.reshape(*places.shape, *rows.shape[1:])


@final
@dataclass(frozen=True, eq=False)
class ElementLabels:
    """Each element belongs to one example, in an order that no single dimension tells."""

    examples: int
    labels: Int64[Tensor, "..."]


Layout = Regular | RowLabels | ElementLabels


def fit(labels: Int64[Tensor, "..."], examples: int) -> Layout:
    """Find the simplest layout that agrees with the labels of all elements.

    Args:
        labels: Whose each element is, -1 if unknown.
        examples: How many there are.
    """
    shape = labels.shape
    rows: RowLabels | None = None
    missing = labels < 0
    above = labels.masked_fill(missing, examples)
    for dim in range(labels.ndim):
        others = [d for d in range(labels.ndim) if d != dim]
        lowest = above.amin(others) if others else above
        highest = labels.amax(others) if others else labels
        known = highest >= 0
        if not torch.equal(lowest[known], highest[known]):
            continue
        if found := _regular(dim, shape[dim], examples, highest, known):
            return found
        if rows is None or len(rows.labels) < shape[dim]:
            rows = RowLabels(dim, examples, highest)
    return rows if rows is not None else ElementLabels(examples, labels)


def _regular(dim: int, size: int, examples: int, labels: Tensor, known: Tensor) -> Regular | None:
    """Try whether entries of a dimension take turns regularly, examples first if that fits."""
    if size % examples:
        return None
    positions = size // examples
    for inner in range(positions, 0, -1):
        if positions % inner == 0:
            found = Regular(dim, positions // inner, examples, inner)
            if torch.equal(found.owners()[known.cpu()], labels[known].cpu()):
                return found
    return None


def reduced(
    layout: Regular | RowLabels,
    tensor: Tensor,
    shape: torch.Size,
    total: Callable[[Tensor], Tensor],
) -> Tensor | None:
    """Add up what each example holds of a value that was broadcast, in the value's shape.

    Args:
        layout: Where examples lie in `tensor`.
        tensor: Gradients in the shape the value was broadcast to.
        shape: The value's own.
        total: Adds up the examples of each group.

    Returns:
        One row per group, or None if the value has entries of its own for different examples.
    """
    if layout.dim >= tensor.ndim:
        return None
    # Align shapes at their ends, as broadcasting does.
    own = (1,) * (tensor.ndim - len(shape)) + tuple(shape)
    if own[layout.dim] != 1:
        return None
    by_example = layout.arranged(tensor)  # the dimension is gone, positions stand in front
    rest = own[: layout.dim] + own[layout.dim + 1 :]
    summed = [1] + [
        dim + 2 for dim, size in enumerate(rest) if size == 1 and by_example.shape[dim + 2] != 1
    ]
    return total(by_example.sum(summed)).reshape(-1, *shape)
