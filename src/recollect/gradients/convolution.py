"""Convolutions of one, two and three dimensions, strided, padded, dilated or grouped."""

from collections.abc import Callable
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn import grad as nn_grad
from typing_extensions import override

from recollect.gradients.groups import Groups, Run
from recollect.gradients.linear import LinearShare
from recollect.gradients.share import Share, add_row_products, combine_rows

Convolution = nn.Conv1d | nn.Conv2d | nn.Conv3d
_WEIGHT_GRADIENT: dict[int, Callable[..., Tensor]] = {
    1: nn_grad.conv1d_weight,
    2: nn_grad.conv2d_weight,
    3: nn_grad.conv3d_weight,
}


@final
class ConvolutionShare(Share):
    """Share of a convolution, its small per-group weight gradients written out.

    Every example of a run becomes a group of one grouped convolution, so that a run costs a single
    call (the weight gradient of a grouped convolution is the per-example gradient); where a layer
    has many weights and few positions, products of its patches are much faster.
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
        self._weight_rows: list[Tensor] | None = None  # a part a run of groups
        self._bias_sums: Tensor | None = None

    @override
    def add_gram(self, by_example: Tensor, by_group: Tensor) -> None:
        if self._bias is not None:
            add_row_products(by_group, self._bias_rows())
        if self._weight is None:
            return
        weight = self._layer.weight
        width = max(1, self._limit_bytes // (len(self.groups) * weight[0].nbytes))
        # Grouped convolutions have few weights a channel and are never worth cutting.
        if width >= len(weight) or self._layer.groups > 1:
            self._weight_rows = self._rows_of(self._cotangents)
            add_row_products(by_group, *self._weight_rows)
            # The factors are not needed again: the rows can be combined.
            self._bias_sums = self._bias_rows() if self._bias is not None else None
            self._activations = self._cotangents = self._activations.new_empty(0)
            return
        for chunk in torch.split(self._cotangents, width, dim=1):
            add_row_products(by_group, *self._rows_of(chunk))

    @override
    def combine(self, weights: Float[Tensor, " groups"]) -> dict[str, Tensor]:
        combined: dict[str, Tensor] = {}
        if self._weight is not None:
            if self._weight_rows is not None:
                combined[self._weight] = combine_rows(weights, *self._weight_rows)
            else:
                by_example = self.groups.spread(weights)
                scales = by_example.reshape(-1, *[1] * (self._cotangents.ndim - 1))
                combined[self._weight] = self._weight_gradient(
                    self._activations, self._cotangents * scales
                )
        if self._bias is not None:
            combined[self._bias] = combine_rows(weights, self._bias_rows())
        return combined

    @override
    def rows(self) -> dict[str, Tensor]:
        written: dict[str, Tensor] = {}
        if self._weight is not None:
            known = self._weight_rows
            parts = self._rows_of(self._cotangents) if known is None else known
            written[self._weight] = torch.cat(parts)
        if self._bias is not None:
            written[self._bias] = self._bias_rows()
        return written

    def _bias_rows(self) -> Float[Tensor, "groups channels"]:
        if self._bias_sums is not None:
            return self._bias_sums
        return self.groups.sum(self._cotangents.flatten(2).sum(2))

    def _rows_of(self, cotangents: Tensor) -> list[Tensor]:
        return [self._rows_of_run(run, cotangents) for run in self.groups.runs()]

    def _rows_of_run(self, run: Run, cotangents: Tensor) -> Tensor:
        d, a = cotangents[run.start : run.stop], self._activations[run.start : run.stop]
        if run.size == 1 and self._has_few_positions(d):
            patches = _patches(self._layer, a)
            products = torch.bmm(d.flatten(2), patches.transpose(1, 2))
            return products.reshape(run.count, d.shape[1], *self._layer.weight.shape[1:])
        if run.size == 1:
            folded = self._weight_gradient(
                a.reshape(1, -1, *a.shape[2:]), d.reshape(1, -1, *d.shape[2:]), run.count
            )
            return folded.reshape(run.count, -1, *folded.shape[1:])
        pairs = zip(torch.split(a, run.size), torch.split(d, run.size), strict=True)
        return torch.stack([self._weight_gradient(*pair) for pair in pairs])

    def _has_few_positions(self, cotangents: Tensor) -> bool:
        # Where the two ways cross was measured on the reduced ResNet18's layers (decision 0002):
        # 160 x 160 x 3 x 3 weights over 4 x 4 positions take 13 ms grouped and 1 ms by patches.
        plain = isinstance(self._layer, nn.Conv2d) and self._layer.groups == 1
        return plain and self._layer.weight.numel() > 2000 * cotangents[0, 0].numel()

    def _weight_gradient(self, activations: Tensor, cotangents: Tensor, folds: int = 1) -> Tensor:
        layer = self._layer
        shape = (cotangents.shape[1], *layer.weight.shape[1:])
        return _WEIGHT_GRADIENT[layer.weight.ndim - 2](
            activations,
            shape,
            cotangents,
            stride=layer.stride,
            padding=_numeric_padding(layer),
            dilation=layer.dilation,
            groups=layer.groups * folds,
        )


def convolution_share(
    layer: Convolution,
    activations: Tensor,
    cotangents: Tensor,
    *,
    weight: str | None,
    bias: str | None,
    groups: Groups,
    limit_bytes: int,
) -> Share:
    """Choose for one convolution between written-out rows and inner products of its patches."""
    activations = _padded(layer, activations)
    if _patches_are_cheaper(layer, cotangents, groups):
        linear = LinearShare(
            _patches(layer, activations).transpose(1, 2).flatten(0, 1),
            cotangents.flatten(2).transpose(1, 2).flatten(0, 1),
            weight=weight,
            bias=bias,
            groups=groups,
            limit_bytes=limit_bytes,
        )
        return _ReshapedWeight(linear, weight, layer.weight.shape)
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

    def __init__(self, linear: Share, weight: str | None, shape: torch.Size) -> None:
        self.groups, self.parameters = linear.groups, linear.parameters
        self._linear, self._weight, self._shape = linear, weight, shape

    @override
    def add_gram(self, by_example: Tensor, by_group: Tensor) -> None:
        self._linear.add_gram(by_example, by_group)

    @override
    def combine(self, weights: Tensor) -> dict[str, Tensor]:
        return self._reshape(self._linear.combine(weights), ())

    @override
    def rows(self) -> dict[str, Tensor]:
        return self._reshape(self._linear.rows(), (len(self.groups),))

    def _reshape(self, by_name: dict[str, Tensor], lead: tuple[int, ...]) -> dict[str, Tensor]:
        if self._weight is not None:
            by_name[self._weight] = by_name[self._weight].reshape(*lead, *self._shape)
        return by_name


def _patches(layer: Convolution, activations: Tensor) -> Float[Tensor, "examples inputs positions"]:
    assert isinstance(layer, nn.Conv2d)
    return F.unfold(
        activations,
        layer.kernel_size,
        dilation=layer.dilation,
        padding=_numeric_padding(layer),
        stride=layer.stride,
    )


def _patches_are_cheaper(layer: Convolution, cotangents: Tensor, groups: Groups) -> bool:
    if not isinstance(layer, nn.Conv2d) or layer.groups > 1:
        return False
    positions = cotangents[0, 0].numel()
    fan_in, fan_out = layer.weight[0].numel(), len(layer.weight)
    examples = groups.num_examples
    products = (examples * positions) ** 2 * (fan_in + fan_out)
    rows = (examples * positions + len(groups) ** 2) * fan_in * fan_out
    return products <= rows


def _numeric_padding(layer: Convolution) -> tuple[int, ...]:
    # Anything but plain zero padding has been applied to the input by `_padded`.
    if layer.padding_mode != "zeros" or isinstance(layer.padding, str):
        return (0,) * (layer.weight.ndim - 2)
    return layer.padding


def _padded(layer: Convolution, activations: Tensor) -> Tensor:
    if layer.padding_mode == "zeros" and not isinstance(layer.padding, str):
        return activations
    mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
    return F.pad(activations, layer._reversed_padding_repeated_twice, mode=mode)
