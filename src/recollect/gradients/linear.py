"""Linear layers: the gradient of example i is d_i^T a_i, and need not be written out."""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from recollect.gradients.groups import Groups
from recollect.gradients.share import Share, add_row_products, combine_rows


@final
class LinearShare(Share):
    """Share of z = a W^T + b, from its inputs a and the gradient d at its outputs.

    With one position an example, <g_i, g_j> = (a_i . a_j + 1)(d_i . d_j), the 1 for the bias. With
    many positions (sequences) the small weight gradients are cheaper to write out.

    Args:
        activations: a, one row a position, the positions of an example next to each other.
        cotangents: d, likewise.
        weight: Name of the weight, None if it is frozen.
        bias: Name of the bias, None if it is frozen or absent.
        groups: Which examples belong together.
        limit_bytes: Rows larger than this are never held whole.
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
    ) -> None:
        self.groups = groups
        self.parameters = tuple(name for name in (weight, bias) if name is not None)
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
    def combine(self, weights: Float[Tensor, " groups"]) -> dict[str, Tensor]:
        combined: dict[str, Tensor] = {}
        by_row = self.groups.spread(weights)
        if self._positions > 1:
            by_row = by_row.repeat_interleave(self._positions)
        if self._weight is not None:
            if self._weight_rows is not None:
                combined[self._weight] = combine_rows(weights, self._weight_rows)
            else:
                scaled = self._cotangents * by_row[:, None]
                combined[self._weight] = scaled.T @ self._activations
        if self._bias is not None:
            combined[self._bias] = by_row @ self._cotangents
        return combined

    @override
    def rows(self) -> dict[str, Tensor]:
        written: dict[str, Tensor] = {}
        if self._weight is not None:
            written[self._weight] = self._rows_of(self._cotangents)
        if self._bias is not None:
            written[self._bias] = self._bias_rows()
        return written

    def products_with(
        self, others: dict[str, Float[Tensor, "others ..."]]
    ) -> Float[Tensor, "others groups"]:
        """Inner products of other gradients of this layer with each of these.

        <G, d_i^T a_i> = d_i . (G a_i), summed over positions.
        """
        total = self._cotangents.new_zeros(len(next(iter(others.values()))), len(self._cotangents))
        if self._weight is not None:
            for products, gradient in zip(total, others[self._weight], strict=True):
                products += ((self._activations @ gradient.T) * self._cotangents).sum(1)
        if self._bias is not None:
            total += others[self._bias] @ self._cotangents.T
        by_example = total.reshape(len(total), self.groups.num_examples, -1).sum(2)
        return by_example @ self.groups.membership(total).T

    @override
    def join(self, other: Share) -> Share:
        # Sequences of different lengths cannot be laid side by side: those are written out.
        if isinstance(other, LinearShare) and self._positions == other._positions:
            return LinearShare(
                torch.cat((self._activations, other._activations)),
                torch.cat((self._cotangents, other._cotangents)),
                weight=self._weight,
                bias=self._bias,
                groups=self.groups + other.groups,
                limit_bytes=self._limit_bytes,
            )
        return super().join(other)

    @property
    def _positions(self) -> int:
        return self._activations.shape[0] // self.groups.num_examples

    def _products_are_cheaper(self) -> bool:
        (rows, fan_in), fan_out = self._activations.shape, self._cotangents.shape[1]
        by_products = rows**2 * (fan_in + fan_out)
        written_out = (rows + len(self.groups) ** 2) * fan_in * fan_out
        fits = rows**2 * self._activations.element_size() <= self._limit_bytes
        return by_products <= written_out and fits

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

    def _rows_of(self, cotangents: Tensor) -> Float[Tensor, "groups outputs inputs"]:
        parts, positions = [], self._positions
        for run in self.groups.runs():
            rows = slice(run.start * positions, run.stop * positions)
            d = cotangents[rows].reshape(run.count, -1, cotangents.shape[1])
            a = self._activations[rows].reshape(run.count, -1, self._activations.shape[1])
            parts.append(torch.bmm(d.transpose(1, 2), a))
        return torch.cat(parts)


def _sum_positions(products: Tensor, positions: int) -> Float[Tensor, "examples examples"]:
    examples = products.shape[0] // positions
    return products.reshape(examples, positions, examples, positions).sum((1, 3))
