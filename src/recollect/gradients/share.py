"""What one layer contributes to the gradient of each group of examples."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from recollect.gradients.groups import Groups


class Share(ABC):
    """A layer's part of several gradients, held as factors or rows until weights are known."""

    groups: Groups
    parameters: tuple[str, ...]

    @abstractmethod
    def add_gram(
        self,
        by_example: Float[Tensor, "examples examples"],
        by_group: Float[Tensor, "groups groups"],
    ) -> None:
        """Add this layer's inner products to one of the two, whichever is cheaper here."""

    @abstractmethod
    def combine(self, weights: Float[Tensor, " groups"]) -> dict[str, Tensor]:
        """Return the weighted sum of the groups' gradients, by parameter name."""

    @abstractmethod
    def rows(self) -> dict[str, Float[Tensor, "groups ..."]]:
        """Write the groups' gradients out, by parameter name."""

    def join(self, other: "Share") -> "Share":
        """Put the groups of `other` (the same layer in a later pass) behind these."""
        mine, theirs = self.rows(), other.rows()
        joined = {name: torch.cat((rows, theirs[name])) for name, rows in mine.items()}
        return ExplicitShare(joined, self.groups + other.groups)


@final
class ExplicitShare(Share):
    """Gradients written out, one row a group."""

    def __init__(self, rows: Mapping[str, Float[Tensor, "groups ..."]], groups: Groups) -> None:
        self.groups = groups
        self.parameters = tuple(rows)
        self._rows = dict(rows)

    @override
    def add_gram(self, by_example: Tensor, by_group: Tensor) -> None:
        for rows in self._rows.values():
            add_row_products(by_group, rows)

    @override
    def combine(self, weights: Float[Tensor, " groups"]) -> dict[str, Tensor]:
        return {name: combine_rows(weights, rows) for name, rows in self._rows.items()}

    @override
    def rows(self) -> dict[str, Tensor]:
        return dict(self._rows)


def add_row_products(by_group: Tensor, rows: Tensor) -> None:
    """Add the inner products of all pairs of rows."""
    flat = rows.flatten(1)
    by_group.addmm_(flat, flat.T)


def combine_rows(weights: Tensor, rows: Tensor) -> Tensor:
    """Weighted sum of rows, in the shape of one."""
    return (weights @ rows.flatten(1)).reshape(rows.shape[1:])


def add_up(shares: list[Share]) -> ExplicitShare:
    """Merge the shares of parameters that several calls use: their gradients add up.

    Inner products of sums have cross terms between calls, so the rows must be written out.
    """
    total: dict[str, Tensor] = {}
    for share in shares:
        for name, rows in share.rows().items():
            total[name] = total[name] + rows if name in total else rows
    return ExplicitShare(total, shares[0].groups)
