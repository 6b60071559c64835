"""Gradients of large groups written out, those of single examples held as factors."""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from recollect.gradients.formulas.linear import LinearShare
from recollect.gradients.share import ExplicitShare, RowSum, Share


@final
class SumsAndSinglesShare(Share):
    """Share of a layer with many weights: the incoming batch's sum, then replayed examples.

    A sum of ten examples is as large as one weight; written out once, it needs no products of its
    examples' positions with everybody else's.

    Args:
        sums: Gradients of the groups that come first.
        singles: Those of the single examples behind them.
    """

    def __init__(self, sums: ExplicitShare, singles: LinearShare) -> None:
        self.groups = sums.groups + singles.groups
        self.parameters = singles.parameters
        self._sums, self._singles = sums, singles

    @override
    def add_gram(self, by_example: Tensor, by_group: Tensor) -> None:
        count, first = len(self._sums.groups), self._sums.groups.num_examples
        self._sums.add_gram(by_example, by_group[:count, :count])
        self._singles.add_gram(by_example[first:, first:], by_group[count:, count:])
        across = self._singles.products_with(self._sums.rows())
        by_group[:count, count:] += across
        by_group[count:, :count] += across.T

    @override
    def add_row(self, row: RowSum) -> None:
        sums, count = self._sums.rows(), len(self._sums.groups)
        for written in sums.values():
            row.add_rows(written)
        products, squares = row.by_group[:, count:]
        products += self._singles.products_with({n: rows[:1] for n, rows in sums.items()})[0]
        squares += self._singles.squared_lengths()

    @override
    def combine(self, weights: Float[Tensor, " groups"]) -> dict[str, Tensor]:
        count = len(self._sums.groups)
        combined = self._singles.combine(weights[count:])
        for name, total in self._sums.combine(weights[:count]).items():
            combined[name] = combined[name].add_(total)
        return combined

    @override
    def rows(self) -> dict[str, Tensor]:
        sums, singles = self._sums.rows(), self._singles.rows()
        return {name: torch.cat((rows, singles[name])) for name, rows in sums.items()}
