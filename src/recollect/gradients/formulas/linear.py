"""Linear layers: the gradient of example i is d_i^T a_i, and need not be written out."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeGuard, final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from recollect.gradients.formulas.table import formula
from recollect.gradients.formulas.visit import Visit
from recollect.gradients.groups import Groups
from recollect.gradients.precision import as_precise_as
from recollect.gradients.share import RowSum, Share, add_row_products, combine_rows

#: Rows up to which products of all pairs are the fastest way: calls cost more than arithmetic.
FEW: Final = 64


@final
class LinearShare(Share):
    """Share of z = a W^T + b, from its inputs a and the gradient d at its outputs.

    With one position per example, <g_i, g_j> = (a_i . a_j + 1)(d_i . d_j), the 1 for the bias. With
    many positions (sequences) the small weight gradients are cheaper to write out.

    Args:
        activations: a, one row per position, the positions of an example next to each other.
        cotangents: d, likewise.
        weight: Name of the weight, None if it is frozen.
        bias: Name of the bias, None if it is frozen or absent.
        groups: Which examples belong together.
        limit_bytes: Rows larger than this are never held whole.
        transposed: The weight is W^T.
    """

    def __init__(
        self,
        activations: Float[Tensor, "rows inputs"],
        cotangents: Float[Tensor, "rows outputs"],
        *,
        weight: str | None,
        bias: str | None,
        groups: Groups,
        limit_bytes: int,
        transposed: bool = False,
    ) -> None:
        if transposed and bias is None:  # the same, with the factors exchanged
            activations, cotangents, transposed = cotangents, activations, False
        self.groups = groups
        self.parameters = tuple(name for name in (weight, bias) if name is not None)
        self._transposed = transposed
        self._activations, self._cotangents = activations, cotangents
        self._weight, self._bias = weight, bias
        self._limit_bytes = limit_bytes
        self._weight_rows: Tensor | None = None

    @override
    def add_gram(self, by_example: Tensor, by_group: Tensor) -> None:
        if self._products_are_cheaper():
            self._add_products(by_example)
            return
        if self._bias is not None:
            add_row_products(by_group, self._bias_rows())
        if self._weight is not None:
            self._add_weight_rows(by_group)

    @override
    def add_row(self, row: RowSum) -> None:
        if self._products_are_cheapest():
            self._add_products(row.by_example)
        elif self._positions == 1 and self.groups.has_singles_behind_first:
            self._add_row_of_factors(row)
        else:
            if self._bias is not None:
                row.add_rows(self._bias_rows())
            if self._weight is not None:
                self._add_row_of_weight_rows(row)

    @override
    def combine(self, weights: Float[Tensor, " groups"]) -> dict[str, Tensor]:
        combined: dict[str, Tensor] = {}
        by_row = self.groups.spread(weights)
        if self._positions > 1:
            by_row = by_row.repeat_interleave(self._positions)
        if self._weight is not None:
            if self._weight_rows is not None:
                total = combine_rows(weights, self._weight_rows)
            else:
                scaled = self._cotangents * by_row[:, None]
                total = scaled.T @ self._activations
            combined[self._weight] = total.T if self._transposed else total
        if self._bias is not None:
            combined[self._bias] = by_row @ self._cotangents
        return combined

    @override
    def rows(self) -> dict[str, Tensor]:
        written: dict[str, Tensor] = {}
        if self._weight is not None:
            rows = self._rows_of(self._cotangents)
            written[self._weight] = rows.transpose(1, 2) if self._transposed else rows
        if self._bias is not None:
            written[self._bias] = self._bias_rows()
        return written

    @override
    def products_with(
        self, others: Mapping[str, Float[Tensor, "others ..."]]
    ) -> Float[Tensor, "others groups"]:
        """Inner products of other gradients of this layer with each of these.

        <G, d_i^T a_i> = d_i . (G a_i), summed over positions.
        """
        total = self._cotangents.new_zeros(len(next(iter(others.values()))), len(self._cotangents))
        if self._weight is not None:
            gradients = others[self._weight]
            for number in range(len(gradients)):  # torch's lazy device cannot be iterated over
                back = gradients[number] if self._transposed else gradients[number].T
                total[number].add_(((self._activations @ back) * self._cotangents).sum(1))
        if self._bias is not None:
            total += others[self._bias] @ self._cotangents.T
        by_example = total.reshape(len(total), self.groups.num_examples, -1).sum(2)
        return by_example @ self.groups.membership(total).T

    @override
    def join(self, other: Share) -> Share:
        # Sequences of different lengths cannot be laid side by side: those are written out.
        if self._alike(other) and self._positions == other._positions:
            return self._with(
                torch.cat((self._activations, other._activations)),
                torch.cat((self._cotangents, other._cotangents)),
                self.groups + other.groups,
            )
        return super().join(other)

    @override
    def with_uses(self, others: Sequence[Share]) -> Share | None:
        alike = [other for other in others if self._alike(other)]
        if len(alike) < len(others):
            return None
        return self._with(
            self._laid_out([self._activations, *(other._activations for other in alike)]),
            self._laid_out([self._cotangents, *(other._cotangents for other in alike)]),
            self.groups,
        )

    def _laid_out(self, factors: list[Tensor]) -> Tensor:
        """Put the positions of all uses of an example next to each other."""
        count = self.groups.num_examples
        by_example = [factor.reshape(count, -1, factor.shape[1]) for factor in factors]
        return torch.cat(by_example, dim=1).flatten(0, 1)

    def _alike(self, other: Share) -> "TypeGuard[LinearShare]":
        return (
            isinstance(other, LinearShare)
            and (self._weight, self._bias) == (other._weight, other._bias)
            and self._transposed == other._transposed
        )

    def _with(self, activations: Tensor, cotangents: Tensor, groups: Groups) -> "LinearShare":
        return LinearShare(
            activations,
            cotangents,
            weight=self._weight,
            bias=self._bias,
            groups=groups,
            limit_bytes=self._limit_bytes,
            transposed=self._transposed,
        )

    @property
    def _positions(self) -> int:
        return self._activations.shape[0] // self.groups.num_examples

    def _products_are_cheaper(self) -> bool:
        (rows, fan_in), fan_out = self._activations.shape, self._cotangents.shape[1]
        by_products = rows**2 * (fan_in + fan_out)
        written_out = (rows + len(self.groups) ** 2) * fan_in * fan_out
        fits = rows**2 * self._activations.element_size() <= self._limit_bytes
        return by_products <= written_out and fits

    def _products_are_cheapest(self) -> bool:
        """Whether products of all pairs of rows are cheaper than a row's own ways."""
        (rows, fan_in), fan_out = self._activations.shape, self._cotangents.shape[1]
        by_products = rows**2 * (fan_in + fan_out)
        fits = rows**2 * self._activations.element_size() <= self._limit_bytes
        return (rows <= FEW or by_products <= rows * fan_in * fan_out) and fits

    def _add_products(self, by_example: Tensor) -> None:
        outer = self._cotangents @ self._cotangents.T
        if self._weight is None:
            products = outer
        else:
            inner = self._activations @ self._activations.T
            if self._bias is not None:
                inner += 1
            if self._positions == 1:
                by_example.addcmul_(inner, outer)
                return
            products = inner.mul_(outer)
        by_example += _sum_positions(products, self._positions)

    def _bias_rows(self) -> Tensor:
        fan_out = self._cotangents.shape[1]
        return self.groups.sum(
            self._cotangents.reshape(self.groups.num_examples, -1, fan_out).sum(1)
        )

    def _add_weight_rows(self, by_group: Tensor) -> None:
        fan_in, fan_out = self._activations.shape[1], self._cotangents.shape[1]
        row_bytes = len(self.groups) * fan_in * self._activations.element_size()
        width = max(1, self._limit_bytes // row_bytes)
        if width >= fan_out:
            self._weight_rows = self._rows_of(self._cotangents)
            add_row_products(by_group, self._weight_rows)
            return
        for chunk in torch.split(self._cotangents, width, dim=1):
            add_row_products(by_group, self._rows_of(chunk))

    def _add_row_of_factors(self, row: RowSum) -> None:
        """Write the first gradient out, and no other."""
        count = self.groups.sizes[0]
        d, a = self._cotangents[:count], self._activations[:count]
        first: dict[str, Tensor] = {}
        if self._weight is not None:
            written = d.T @ a
            first[self._weight] = (written.T if self._transposed else written)[None]
        if self._bias is not None:
            first[self._bias] = d.sum(0, keepdim=True)
        products, squares = row.by_group
        found = self.products_with(first)[0]
        products += found
        squares[0] += found[0]
        squares[1:] += self.squared_lengths()[count:]

    def squared_lengths(self) -> Float[Tensor, " examples"]:
        """Return |d_i^T a_i|^2 of each example, summed over pairs of its positions."""
        count = self.groups.num_examples
        if self._positions == 1:
            of_outputs = self._cotangents.square().sum(1)
            if self._weight is None:
                return of_outputs
            of_inputs = self._activations.square().sum(1)
            return of_outputs * (of_inputs + 1 if self._bias is not None else of_inputs)
        d = self._cotangents.reshape(count, self._positions, -1)
        products = d @ d.transpose(1, 2)
        if self._weight is not None:
            a = self._activations.reshape(count, self._positions, -1)
            between_inputs = a @ a.transpose(1, 2)
            if self._bias is not None:
                between_inputs += 1
            products *= between_inputs
        return products.sum((1, 2))

    def _add_row_of_weight_rows(self, row: RowSum) -> None:
        fan_in, fan_out = self._activations.shape[1], self._cotangents.shape[1]
        row_bytes = len(self.groups) * fan_in * self._activations.element_size()
        width = max(1, self._limit_bytes // row_bytes)
        if width >= fan_out:
            self._weight_rows = self._rows_of(self._cotangents)
            row.add_rows(self._weight_rows)
            return
        for chunk in torch.split(self._cotangents, width, dim=1):
            row.add_rows(self._rows_of(chunk))

    def _rows_of(self, cotangents: Tensor) -> Float[Tensor, "groups outputs inputs"]:
        fan_in, fan_out = self._activations.shape[1], cotangents.shape[1]
        positions = self._positions
        written, first = cotangents.new_empty(len(self.groups), fan_out, fan_in), 0
        for run in self.groups.runs():
            rows = slice(run.start * positions, run.stop * positions)
            d = cotangents[rows].reshape(run.count, -1, fan_out)
            a = self._activations[rows].reshape(run.count, -1, fan_in)
            torch.bmm(d.transpose(1, 2), a, out=written[first : first + run.count])
            first += run.count
        return written


def _sum_positions(products: Tensor, positions: int) -> Float[Tensor, "examples examples"]:
    examples = products.shape[0] // positions
    return products.reshape(examples, positions, examples, positions).sum((1, 3))


# --- nodes ----------------------------------------------------------------------------------------


@formula("AddmmBackward0")
def addmm(visit: Visit) -> Sequence[Share] | None:
    """Bias + input W^T, as a linear layer with a bias computes it."""
    if visit.saved("alpha") != 1 or visit.saved("beta") != 1:
        return None
    return _product(visit, "mat1", "mat2", first=1, bias=visit.slots.get(0))


@formula("MmBackward0")
def mm(visit: Visit) -> Sequence[Share] | None:
    """A product of two matrices."""
    return _product(visit, "self", "mat2", first=0, bias=None)


def _product(
    visit: Visit, left: str, right: str, *, first: int, bias: str | None
) -> Sequence[Share] | None:
    """Take a product apart, one of whose factors belongs to all examples.

    Args:
        visit: The node.
        left: What the node calls the left factor.
        right: And the right one.
        first: Input number of the left factor; the right one follows it.
        bias: Slot of what is added, if it leads to parameters.
    """
    layout = visit.rows_layout
    by_rows = layout is not None and layout.dim == 0  # else examples lie in columns
    if layout is None or (first in visit.slots and first + 1 in visit.slots):
        return None
    d = visit.gradient
    weighted = first + 1 if by_rows else first
    if set(visit.slots) - {weighted, *([0] if bias else [])}:
        return None  # a parameter lies along the examples
    if bias is not None and (not by_rows or visit.shape(0) != d.shape[1:]):
        return None
    if weighted not in visit.slots:
        rows = visit.summed(d.to(visit.dtype(0)), visit.shape(0))
        return None if rows is None else [visit.explicit({0: rows})]
    a, d = as_precise_as(
        visit.dtype(weighted), visit.saved(left if by_rows else right), visit.gradient
    )
    if not by_rows:
        a, d = a.T, d.T  # rows are examples'; the left factor's gradient is d^T a
    # By rows the right factor is W^T, whose gradient is a^T d.
    transposed = by_rows != (weighted in visit.transposed)
    return [
        LinearShare(
            layout.arranged(a, 0).flatten(0, 1),
            layout.arranged(d, 0).flatten(0, 1),
            weight=visit.slots[weighted],
            bias=bias,
            groups=visit.groups,
            limit_bytes=visit.limit_bytes,
            transposed=transposed,
        )
    ]


@formula("BmmBackward0")
def bmm(visit: Visit) -> Sequence[Share] | None:
    """A stack of products, as `einsum` makes them: one weight per head, examples in rows."""
    layout = visit.rows_layout
    if layout is None or layout.dim != 1 or set(visit.slots) != {1}:
        return None
    a, d = as_precise_as(visit.dtype(1), visit.saved("self"), visit.gradient)
    by_example = torch.einsum("nphi,npho->nhio", layout.arranged(a), layout.arranged(d))
    return [visit.explicit({1: visit.groups.sum(by_example)})]


@formula("MvBackward0")
def mv(visit: Visit) -> Sequence[Share] | None:
    """A matrix times a vector of weights."""
    if set(visit.slots) != {1}:
        return None
    a, d = as_precise_as(visit.dtype(1), visit.saved("self"), visit.gradient)
    rows = visit.summed(a * d[:, None], visit.shape(1))
    return None if rows is None else [visit.explicit({1: rows})]
