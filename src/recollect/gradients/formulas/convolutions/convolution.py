"""Convolutions of one, two and three dimensions, strided, padded or dilated."""

from collections.abc import Iterator, Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from recollect.gradients.formulas.convolutions.grouped import GroupedConvolutionShare
from recollect.gradients.formulas.convolutions.patches import Convolution, patches
from recollect.gradients.formulas.convolutions.rows import (
    in_weight_shape,
    positions_first,
    summed_weight,
    weight_rows,
)
from recollect.gradients.formulas.linear import LinearShare
from recollect.gradients.formulas.sums_and_singles import SumsAndSinglesShare
from recollect.gradients.formulas.table import formula
from recollect.gradients.formulas.visit import Visit
from recollect.gradients.groups import Groups
from recollect.gradients.precision import as_precise_as
from recollect.gradients.rows.layout import Regular
from recollect.gradients.scratch import Scratch
from recollect.gradients.share import (
    ExplicitShare,
    RowSum,
    Share,
    add_row_products,
    combine_rows,
)


def convolution_share(  # noqa: PLR0913 - what one call of a layer left behind
    layer: Convolution,
    activations: Tensor,
    cotangents: Tensor,
    *,
    weight: str | None,
    bias: str | None,
    groups: Groups,
    limit_bytes: int,
    scratch: Scratch,
    by_example: bool = True,
) -> Share:
    """Choose how to hold the gradients of one convolution until weights are known.

    Early layers have few weights and many positions: gradients are written out at once, and what
    they were made from is let go. Late layers have many weights and few positions: single examples
    are held as factors, like those of a linear layer.

    With `by_example` False, rows of the batch are not examples, and products of pairs of them are
    of no use.
    """
    if layer.groups > 1:
        return GroupedConvolutionShare(
            layer, activations, cotangents, weight=weight, bias=bias, groups=groups
        )
    rows = {} if bias is None else {bias: groups.sum(cotangents.flatten(2).sum(2))}
    if weight is None:
        return ExplicitShare(rows, groups)
    sums, singles = groups.sums_and_singles() if by_example else (groups, Groups(()))
    by_products = len(singles) > 0 and _products_are_cheaper(layer, cotangents, len(singles))
    if not by_products and len(groups) * layer.weight_bytes <= limit_bytes:
        rows[weight] = weight_rows(layer, activations, cotangents, groups, scratch)
        return _InPatchOrder(ExplicitShare(rows, groups), weight, layer)
    patch_bytes = cotangents[0, 0].numel() * layer.output_bytes
    if (
        by_products
        and max(len(sums) * layer.weight_bytes, len(singles) * patch_bytes) <= limit_bytes
    ):
        a, d = activations[sums.num_examples :], cotangents[sums.num_examples :]
        linear = LinearShare(
            patches(layer, a, d.shape[2:]).flatten(0, 1),
            positions_first(d).flatten(0, 1),
            weight=weight,
            bias=bias,
            groups=singles,
            limit_bytes=limit_bytes,
        )
        if len(sums) == 0:
            return _InPatchOrder(linear, weight, layer)
        rows = {name: found[: len(sums)] for name, found in rows.items()}
        rows[weight] = weight_rows(layer, activations, cotangents, sums, scratch)
        held = SumsAndSinglesShare(ExplicitShare(rows, sums), linear)
        return _InPatchOrder(held, weight, layer)
    return _LargeConvolutionShare(
        layer,
        activations,
        cotangents,
        rows,
        weight=weight,
        groups=groups,
        limit_bytes=limit_bytes,
        scratch=scratch,
    )


def _products_are_cheaper(layer: Convolution, cotangents: Tensor, singles: int) -> bool:
    positions = cotangents[0, 0].numel()
    fan_in, fan_out = layer.fan_in, layer.weight_shape[0]
    products = (singles * positions) ** 2 * (fan_in + fan_out)
    written_out = singles * (positions + singles) * fan_in * fan_out
    return products <= written_out


@formula("ConvolutionBackward0")
def convolution(visit: Visit) -> Sequence[Share] | None:
    """A convolution of any kind; a transposed one has its input and its gradient exchanged."""
    layout = visit.rows_layout
    weight, bias = visit.slots.get(1), visit.slots.get(2)
    if layout is None or layout.dim != 0 or 0 in visit.slots:
        return None
    position = 1 if weight is not None else 2
    a, d = as_precise_as(visit.dtype(position), visit.saved("input"), visit.gradient)
    by_example = layout.arranged(d, 0)
    positions = by_example.shape[1]
    groups = visit.groups
    if positions > 1:
        # Rows of one example are neighbours, so a larger group holds exactly the same rows.
        groups = Groups(tuple(size * positions for size in groups.sizes))
    if positions > 1 or not isinstance(layout, Regular):
        a, d = layout.arranged(a, 0).flatten(0, 1), by_example.flatten(0, 1)
    layer = Convolution(
        tuple(visit.shape(1)) if weight is not None else (),
        tuple(visit.saved("stride")),
        tuple(visit.saved("padding")),
        tuple(visit.saved("dilation")),
        visit.saved("groups"),
        d.element_size(),
    )
    if visit.saved("transposed"):
        return _transposed(visit, layer, a, d, groups)
    return [
        convolution_share(
            layer,
            a,
            d,
            weight=weight,
            bias=bias,
            groups=groups,
            limit_bytes=visit.limit_bytes,
            scratch=visit.scratch,
            by_example=positions == 1,
        )
    ]


def _transposed(
    visit: Visit, layer: Convolution, a: Tensor, d: Tensor, groups: Groups
) -> list[Share]:
    shares: list[Share] = []
    if 2 in visit.slots:
        shares.append(ExplicitShare({visit.slots[2]: groups.sum(d.flatten(2).sum(2))}, groups))
    if 1 in visit.slots:
        shares.append(
            convolution_share(
                layer,
                d,
                a,
                weight=visit.slots[1],
                bias=None,
                groups=groups,
                limit_bytes=visit.limit_bytes,
                scratch=visit.scratch,
                by_example=len(groups) == groups.num_examples,
            )
        )
    return shares


@final
class _InPatchOrder(Share):
    """A share whose weights are in the order of patches, given back in the layer's shape."""

    def __init__(self, inner: Share, weight: str, layer: Convolution) -> None:
        self.groups, self.parameters = inner.groups, inner.parameters
        self._inner, self._weight, self._layer = inner, weight, layer

    @override
    def add_gram(self, by_example: Tensor, by_group: Tensor) -> None:
        self._inner.add_gram(by_example, by_group)

    @override
    def add_row(self, row: RowSum) -> None:
        self._inner.add_row(row)

    @override
    def combine(self, weights: Float[Tensor, " groups"]) -> dict[str, Tensor]:
        return self._in_shape(self._inner.combine(weights))

    @override
    def rows(self) -> dict[str, Tensor]:
        return self._in_shape(self._inner.rows())

    @override
    def join(self, other: Share) -> Share:
        if isinstance(other, _InPatchOrder):  # one order is as good as another
            return _InPatchOrder(self._inner.join(other._inner), self._weight, self._layer)
        return super().join(other)

    def _in_shape(self, found: dict[str, Tensor]) -> dict[str, Tensor]:
        found[self._weight] = in_weight_shape(self._layer, found[self._weight])
        return found


@final
class _LargeConvolutionShare(Share):
    """Gradients too large to hold: written some output channels at a time, made again at the end.

    Args:
        bias_rows: Gradients of the bias by its name, if it has one.
    """

    def __init__(
        self,
        layer: Convolution,
        activations: Tensor,
        cotangents: Tensor,
        bias_rows: dict[str, Tensor],
        *,
        weight: str,
        groups: Groups,
        limit_bytes: int,
        scratch: Scratch,
    ) -> None:
        self.groups = groups
        self.parameters = (weight, *bias_rows)
        self._layer, self._weight, self._bias_rows = layer, weight, bias_rows
        self._activations, self._cotangents = activations, cotangents
        self._limit_bytes, self._scratch = limit_bytes, scratch

    @override
    def add_gram(self, by_example: Tensor, by_group: Tensor) -> None:
        for rows in self._some_at_a_time():
            add_row_products(by_group, rows)

    @override
    def add_row(self, row: RowSum) -> None:
        for rows in self._some_at_a_time():
            row.add_rows(rows)

    def _some_at_a_time(self) -> Iterator[Tensor]:
        """Write the gradients of the bias, then of a few output channels at a time."""
        yield from self._bias_rows.values()
        one_output = len(self.groups) * self._layer.output_bytes
        for some in torch.split(self._cotangents, max(1, self._limit_bytes // one_output), dim=1):
            yield weight_rows(self._layer, self._activations, some, self.groups, self._scratch)

    @override
    def combine(self, weights: Float[Tensor, " groups"]) -> dict[str, Tensor]:
        combined = {name: combine_rows(weights, rows) for name, rows in self._bias_rows.items()}
        by_example = self.groups.spread(weights)
        scaled = self._cotangents * by_example.reshape(-1, *[1] * (self._cotangents.ndim - 1))
        total = summed_weight(self._layer, self._activations, scaled, self._scratch)
        combined[self._weight] = in_weight_shape(self._layer, total)
        return combined

    @override
    def rows(self) -> dict[str, Tensor]:
        written = weight_rows(
            self._layer, self._activations, self._cotangents, self.groups, self._scratch
        )
        return {**self._bias_rows, self._weight: in_weight_shape(self._layer, written)}
