"""What one layer contributes to the gradient of each group of examples."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from recollect.gradients.groups import Groups, as_rows

_PIECE = 4096
_SHORT = 1024  # entries of a parameter whose rows are put together with those of others


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

    def add_row(self, row: "RowSum") -> None:
        """Add this layer's inner products with the first group, and its squared lengths."""
        for rows in self.rows().values():
            row.add_rows(rows)

    def products_with(
        self, others: Mapping[str, Float[Tensor, "others ..."]]
    ) -> Float[Tensor, "others groups"]:
        """Inner products of other gradients of this layer with each of these."""
        return torch.stack(
            [as_rows(others[name]) @ as_rows(rows).T for name, rows in self.rows().items()]
        ).sum(0)

    @abstractmethod
    def combine(self, weights: Float[Tensor, " groups"]) -> dict[str, Tensor]:
        """Return the weighted sum of the groups' gradients, by parameter name."""

    @abstractmethod
    def rows(self) -> dict[str, Float[Tensor, "groups ..."]]:
        """Write the groups' gradients out, by parameter name."""

    def with_uses(self, others: "Sequence[Share]") -> "Share | None":  # noqa: ARG002
        """Add other uses of the same parameters without writing anything out; None if it cannot."""
        return None

    def join(self, other: "Share") -> "Share":
        """Put the groups of `other` (the same layer in a later pass) behind these."""
        mine, theirs = self.rows(), other.rows()
        joined = {name: torch.cat((rows, theirs[name])) for name, rows in mine.items()}
        return ExplicitShare(joined, self.groups + other.groups)


class RowSum:
    """<g, g_k> and |g_k|^2, added up layer by layer; g is the gradient of the first group.

    Args:
        groups: Which examples belong together.
        like: A tensor of the kind that they shall be.
    """

    def __init__(self, groups: Groups, *, like: Tensor) -> None:
        self.groups = groups
        self._like = like
        self._short: list[Tensor] = []
        self._by_example: Tensor | None = None
        self._by_group: Tensor | None = None

    @property
    def by_example(self) -> Float[Tensor, "examples examples"]:
        """Where layers of few rows add the products of all pairs of examples: fewer calls."""
        if self._by_example is None:
            count = self.groups.num_examples
            self._by_example = self._like.new_zeros(count, count)
        return self._by_example

    @property
    def by_group(self) -> Float[Tensor, "two groups"]:
        """Where the others add <g, g_k>, in the first row, and |g_k|^2."""
        if self._by_group is None:
            self._by_group = self._like.new_zeros(2, len(self.groups))
        return self._by_group

    def add_rows(self, rows: Float[Tensor, "groups ..."]) -> None:
        """Add those of gradients that are written out, of all groups or the first few."""
        flat = as_rows(rows)
        if flat.shape[1] <= _SHORT and flat.shape[0] == len(self.groups):
            self._short.append(flat)  # together they cost as many calls as one
        else:
            self._add_long(flat)

    def _add_long(self, flat: Float[Tensor, "groups width"]) -> None:
        into = self.by_group[:, : len(flat)]  # torch's lazy device cannot be iterated over
        into[0].add_(flat @ flat[0])
        into[1].add_(torch.linalg.vector_norm(flat, dim=1).square_())

    def total(self, scales: Float[Tensor, " groups"]) -> Float[Tensor, "two groups"]:
        """Return the sum over layers, of gradients that are shares times `scales`."""
        if self._short:
            self._add_long(torch.cat(self._short, dim=1))
            self._short = []
        found = self._by_group
        if self._by_example is not None:
            members = self.groups.membership(self._by_example)
            products = members @ self._by_example @ members.T
            of_examples = torch.stack((products[0], products.diagonal()))
            found = of_examples if found is None else of_examples.add_(found)
        elif found is None:
            found = self.by_group
        return found * torch.stack((scales * scales[0], scales.square()))


@final
class ExplicitShare(Share):
    """Gradients written out, one row per group."""

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


def add_row_products(by_group: Tensor, *parts: Tensor) -> None:
    """Add the inner products of all pairs of rows; parts follow each other, and are not joined.

    Rows are the largest tensors of a step; copying them together would cost more than the products.
    """
    flat = [as_rows(part) for part in parts]
    start = 0
    for index, first in enumerate(flat):
        stop = start + first.shape[0]
        by_group[start:stop, start:stop] += _own_products(first)
        other_start = stop
        for second in flat[index + 1 :]:
            other_stop = other_start + second.shape[0]
            products = first @ second.T
            by_group[start:stop, other_start:other_stop] += products
            by_group[other_start:other_stop, start:stop] += products.T
            other_start = other_stop
        start = stop


def _own_products(rows: Float[Tensor, "rows width"]) -> Float[Tensor, "rows rows"]:
    """Inner products of long rows, in pieces that stay in the cache: twice as fast as at once."""
    pieces = rows.shape[1] // _PIECE
    if pieces < 4:
        return rows @ rows.T
    whole = rows[:, : pieces * _PIECE].reshape(-1, pieces, _PIECE).transpose(0, 1)
    products = torch.bmm(whole, whole.transpose(1, 2)).sum(0)
    rest = rows[:, pieces * _PIECE :]
    return products.addmm_(rest, rest.T)


def combine_rows(weights: Tensor, *parts: Tensor) -> Tensor:
    """Weighted sum of rows, in the shape of one."""
    total, start = None, 0
    for part in parts:
        stop = start + part.shape[0]
        found = weights[start:stop] @ as_rows(part)
        total = found if total is None else total + found
        start = stop
    assert total is not None
    return total.reshape(parts[0].shape[1:])


def add_up(shares: list[Share]) -> ExplicitShare:
    """Merge the shares of parameters that several calls use: their gradients add up.

    Inner products of sums have cross terms between calls, so the rows must be written out.
    """
    total: dict[str, Tensor] = {}
    for share in shares:
        for name, rows in share.rows().items():
            total[name] = total[name] + rows if name in total else rows
    return ExplicitShare(total, shares[0].groups)


def one_share_a_parameter(shares: Sequence[Share]) -> list[Share]:
    """Merge shares that speak for the same parameter: a module used twice, or tied weights."""
    merged: list[list[Share]] = []
    for share in shares:
        together = [group for group in merged if _overlap(group, share)]
        merged = [group for group in merged if group not in together]
        merged.append([*(member for group in together for member in group), share])
    return [_merged(group) for group in merged]


def _merged(group: list[Share]) -> Share:
    first, *others = group
    if not others:
        return first
    together = first.with_uses(others)
    return together if together is not None else add_up(group)


def _overlap(group: Sequence[Share], share: Share) -> bool:
    return any(not set(member.parameters).isdisjoint(share.parameters) for member in group)
