"""Convolutions whose output channels see only some of the input channels."""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from recollect.gradients.formulas.convolutions.patches import Convolution, weight_gradient
from recollect.gradients.groups import Groups, Run
from recollect.gradients.share import Share, add_row_products, combine_rows


@final
class GroupedConvolutionShare(Share):
    """Share of a convolution with channel groups, its few weights a channel written out.

    Every example of a run becomes a channel group of one larger convolution, so that a run costs a
    single call: the weight gradient of that convolution is the per-example gradient.
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
    ) -> None:
        self.groups = groups
        self.parameters = tuple(name for name in (weight, bias) if name is not None)
        self._layer, self._activations, self._cotangents = layer, activations, cotangents
        self._weight, self._bias = weight, bias
        self._known: dict[str, Tensor] | None = None

    @override
    def add_gram(self, by_example: Tensor, by_group: Tensor) -> None:
        for rows in self.rows().values():
            add_row_products(by_group, rows)

    @override
    def combine(self, weights: Float[Tensor, " groups"]) -> dict[str, Tensor]:
        return {name: combine_rows(weights, rows) for name, rows in self.rows().items()}

    @override
    def rows(self) -> dict[str, Tensor]:
        if self._known is None:
            self._known = {}
            if self._weight is not None:
                parts = [self._rows_of(run) for run in self.groups.runs()]
                self._known[self._weight] = torch.cat(parts)
            if self._bias is not None:
                self._known[self._bias] = self.groups.sum(self._cotangents.flatten(2).sum(2))
            # The factors are not needed again.
            self._activations = self._cotangents = self._activations.new_empty(0)
        return dict(self._known)

    def _rows_of(self, run: Run) -> Tensor:
        d, a = self._cotangents[run.start : run.stop], self._activations[run.start : run.stop]
        if run.size == 1:
            folded = weight_gradient(
                self._layer,
                a.reshape(1, -1, *a.shape[2:]),
                d.reshape(1, -1, *d.shape[2:]),
                folds=run.count,
            )
            return folded.reshape(run.count, -1, *folded.shape[1:])
        pairs = zip(torch.split(a, run.size), torch.split(d, run.size), strict=True)
        return torch.stack([weight_gradient(self._layer, *pair) for pair in pairs])
