"""Convolutions of one, two and three dimensions, strided, padded or dilated."""

from typing import Final, final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from recollect.gradients.grouped_convolution import GroupedConvolutionShare
from recollect.gradients.groups import Groups, Run
from recollect.gradients.linear import LinearShare
from recollect.gradients.patches import Convolution, padded, patches, weight_gradient
from recollect.gradients.share import Share, add_row_products, combine_rows

# Patches held at a time. Beyond it the allocator asks the system for every piece anew: on layers of
# mini-ImageNet that made the products three times slower.
_PATCH_BYTES: Final = 8 * 2**20


@final
class ConvolutionShare(Share):
    """Share of a convolution, its small per-group weight gradients written out.

    The weight gradient of one example is a product of its cotangents with its patches, so a run of
    examples is one batched product. Weights are held with the input channels last, the order in
    which the patches of such images lie in memory.
    """

    def __init__(
        self,
        layer: Convolution,
        activations: Tensor,
        cotangents: Tensor,
        *,
        weight: str | None,
        bias: str | None,
        groups: Groups,
        limit_bytes: int,
    ) -> None:
        self.groups = groups
        self.parameters = tuple(name for name in (weight, bias) if name is not None)
        self._layer, self._activations, self._cotangents = layer, activations, cotangents
        self._weight, self._bias = weight, bias
        self._limit_bytes = limit_bytes
        self._weight_rows: Tensor | None = None
        self._bias_sums: Tensor | None = None

    @override
    def add_gram(self, by_example: Tensor, by_group: Tensor) -> None:
        if self._bias is not None:
            add_row_products(by_group, self._bias_rows())
        if self._weight is None:
            return
        weight = self._layer.weight
        width = max(1, self._limit_bytes // (len(self.groups) * weight[0].nbytes))
        if width >= len(weight):
            self._weight_rows = self._rows_of(self._cotangents)
            add_row_products(by_group, self._weight_rows)
            # The factors are not needed again: the rows can be combined.
            self._bias_sums = self._bias_rows() if self._bias is not None else None
            self._activations = self._cotangents = self._activations.new_empty(0)
            return
        for chunk in torch.split(self._cotangents, width, dim=1):
            add_row_products(by_group, self._rows_of(chunk))

    @override
    def combine(self, weights: Float[Tensor, " groups"]) -> dict[str, Tensor]:
        combined: dict[str, Tensor] = {}
        if self._weight is not None:
            if self._weight_rows is not None:
                combined[self._weight] = _channels_second(
                    self._layer, combine_rows(weights, self._weight_rows)
                )
            else:
                by_example = self.groups.spread(weights)
                scales = by_example.reshape(-1, *[1] * (self._cotangents.ndim - 1))
                combined[self._weight] = weight_gradient(
                    self._layer, self._activations, self._cotangents * scales
                )
        if self._bias is not None:
            combined[self._bias] = combine_rows(weights, self._bias_rows())
        return combined

    @override
    def rows(self) -> dict[str, Tensor]:
        written: dict[str, Tensor] = {}
        if self._weight is not None:
            known = self._weight_rows
            rows = self._rows_of(self._cotangents) if known is None else known
            written[self._weight] = _channels_second(self._layer, rows)
        if self._bias is not None:
            written[self._bias] = self._bias_rows()
        return written

    def _bias_rows(self) -> Float[Tensor, "groups channels"]:
        if self._bias_sums is not None:
            return self._bias_sums
        return self.groups.sum(self._cotangents.flatten(2).sum(2))

    def _rows_of(self, cotangents: Tensor) -> Float[Tensor, "groups outputs patch"]:
        outputs, patch = cotangents.shape[1], self._layer.weight[0].numel()
        rows = cotangents.new_empty(len(self.groups), outputs, patch)
        first = 0
        for run in self.groups.runs():
            self._fill_run(rows[first : first + run.count], run, cotangents)
            first += run.count
        return rows

    @torch.no_grad()
    def _fill_run(self, rows: Tensor, run: Run, cotangents: Tensor) -> None:
        d, a = cotangents[run.start : run.stop], self._activations[run.start : run.stop]
        if run.size > 1:
            pairs = zip(torch.split(a, run.size), torch.split(d, run.size), strict=True)
            for i, pair in enumerate(pairs):
                rows[i] = weight_gradient(self._layer, *pair).movedim(1, -1).flatten(1)
            return
        positions = d[0, 0].numel()
        transposed = d.movedim(1, -1).reshape(run.count, positions, -1).transpose(1, 2)
        at_once = max(1, _PATCH_BYTES // (positions * rows[0, 0].nbytes))
        for start in range(0, run.count, at_once):
            some = slice(start, start + at_once)
            seen = patches(self._layer, a[some], d.shape[2:])
            torch.bmm(transposed[some], seen, out=rows[some])


def convolution_share(
    layer: Convolution,
    activations: Tensor,
    cotangents: Tensor,
    *,
    weight: str | None,
    bias: str | None,
    groups: Groups,
    limit_bytes: int,
    by_example: bool = True,
) -> Share:
    """Choose for one convolution between written-out rows and inner products of its patches.

    With `by_example` False, rows of the batch are not examples, and products of pairs of them are
    of no use.
    """
    activations = padded(layer, activations)
    if layer.groups > 1:
        return GroupedConvolutionShare(
            layer, activations, cotangents, weight=weight, bias=bias, groups=groups
        )
    if by_example and _products_are_cheaper(layer, cotangents, groups):
        linear = LinearShare(
            patches(layer, activations, cotangents.shape[2:]).flatten(0, 1),
            cotangents.flatten(2).transpose(1, 2).flatten(0, 1),
            weight=weight,
            bias=bias,
            groups=groups,
            limit_bytes=limit_bytes,
        )
        return _ReshapedWeight(linear, weight, layer)
    return ConvolutionShare(
        layer,
        activations,
        cotangents,
        weight=weight,
        bias=bias,
        groups=groups,
        limit_bytes=limit_bytes,
    )


@final
class _ReshapedWeight(Share):
    """A linear share over patches, its weight in the convolution's shape."""

    def __init__(self, linear: Share, weight: str | None, layer: Convolution) -> None:
        self.groups, self.parameters = linear.groups, linear.parameters
        self._linear, self._weight, self._layer = linear, weight, layer

    @override
    def add_gram(self, by_example: Tensor, by_group: Tensor) -> None:
        self._linear.add_gram(by_example, by_group)

    @override
    def combine(self, weights: Tensor) -> dict[str, Tensor]:
        return self._reshape(self._linear.combine(weights))

    @override
    def rows(self) -> dict[str, Tensor]:
        return self._reshape(self._linear.rows())

    def _reshape(self, by_name: dict[str, Tensor]) -> dict[str, Tensor]:
        if self._weight is not None:
            by_name[self._weight] = _channels_second(self._layer, by_name[self._weight])
        return by_name


def _channels_second(layer: Convolution, rows: Float[Tensor, "... patch"]) -> Tensor:
    """Give weights written in the order of patches their usual shape."""
    inputs, *kernel = layer.weight.shape[1:]
    return rows.reshape(*rows.shape[:-1], *kernel, inputs).movedim(-1, -len(kernel) - 1)


def _products_are_cheaper(layer: Convolution, cotangents: Tensor, groups: Groups) -> bool:
    positions = cotangents[0, 0].numel()
    fan_in, fan_out = layer.weight[0].numel(), len(layer.weight)
    examples = groups.num_examples
    products = (examples * positions) ** 2 * (fan_in + fan_out)
    rows = (examples * positions + len(groups) ** 2) * fan_in * fan_out
    return products <= rows
