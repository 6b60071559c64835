"""Several gradients at once: their inner products, and any weighted sum of them."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from recollect.gradients.groups import Groups, as_rows
from recollect.gradients.objective import Objective
from recollect.gradients.share import ExplicitShare, RowSum, Share


class GramSum:
    """Inner products of gradients, added up layer by layer.

    Args:
        groups: Which examples belong together.
        like: A tensor of the kind that the inner products shall be.
    """

    def __init__(self, groups: Groups, *, like: Tensor) -> None:
        self._groups = groups
        self._by_example = like.new_zeros(groups.num_examples, groups.num_examples)
        self._by_group = like.new_zeros(len(groups), len(groups))

    def add(self, share: Share) -> None:
        """Add those of one layer's share."""
        share.add_gram(self._by_example, self._by_group)

    def total(self, scales: Float[Tensor, " groups"]) -> Float[Tensor, "groups groups"]:
        """Return the sum over layers, of gradients that are shares times `scales`."""
        members = self._groups.membership(self._by_example)
        self._by_group.addmm_(members @ self._by_example, members.T)
        return self._by_group.mul_(scales).mul_(scales[:, None])


class ProductSums:
    """Inner products of one kind or of both, added up layer by layer.

    Args:
        objective: Says which.
    """

    def __init__(self, objective: Objective) -> None:
        groups, scales = objective.groups, objective.scales
        wants_row, wants_gram = objective.products != "matrix", objective.products != "row"
        self._scales = scales
        self._gram = GramSum(groups, like=scales) if wants_gram else None
        self._row = RowSum(groups, like=scales) if wants_row else None

    def add(self, share: Share) -> None:
        """Add those of one layer's share."""
        if self._row is not None:
            share.add_row(self._row)
        if self._gram is not None:
            self._gram.add(share)

    def totals(self) -> tuple[Tensor | None, Tensor | None]:
        """Return the matrix and the row, each if it was wanted. To be called once."""
        gram = None if self._gram is None else self._gram.total(self._scales)
        return gram, None if self._row is None else self._row.total(self._scales)


class Measurement:
    """The gradients of the groups of a batch, known by their shares at every layer.

    Args:
        shares: One a layer, each parameter in one share only.
        groups: Which examples belong together.
        scales: Factor by which each group's summed share becomes the gradient that is meant.
        others: Shares of parameters that are not measured: part of sums, not of inner products.
    """

    def __init__(
        self,
        shares: Sequence[Share],
        groups: Groups,
        scales: Float[Tensor, " groups"],
        *,
        others: Sequence[Share] = (),
    ) -> None:
        self.groups = groups
        self.scales = scales
        self._others = others
        self._shares = {tuple(sorted(share.parameters)): share for share in shares}

    @property
    def shares(self) -> Mapping[tuple[str, ...], Share]:
        """The shares, by the names of the parameters that each is of."""
        return self._shares

    @staticmethod
    def of_rows(
        rows: Mapping[str, Float[Tensor, "groups ..."]],
        groups: Groups,
        measured: Collection[str] | None = None,
    ) -> "Measurement":
        """Take gradients that are written out; None measures all of them."""
        scales = next(iter(rows.values())).new_ones(len(groups))
        if measured is None:
            return Measurement([ExplicitShare(rows, groups)], groups, scales)
        shares = {name: ExplicitShare({name: found}, groups) for name, found in rows.items()}
        inside = [share for name, share in shares.items() if name in measured]
        others = [share for name, share in shares.items() if name not in measured]
        return Measurement(inside, groups, scales, others=others)

    def __len__(self) -> int:
        return len(self.groups)

    def gram(self) -> Float[Tensor, "groups groups"]:
        """Inner products of all pairs of gradients."""
        found = GramSum(self.groups, like=self.scales)
        for share in self.shares.values():
            found.add(share)
        return found.total(self.scales)

    def row(self) -> Float[Tensor, "two groups"]:
        """Inner products with the first gradient, and each gradient's squared length."""
        found = RowSum(self.groups, like=self.scales)
        for share in self.shares.values():
            share.add_row(found)
        return found.total(self.scales)

    def products_with(self, gradient: Mapping[str, Tensor]) -> Float[Tensor, " groups"]:
        """Inner products with a gradient that is written out, by parameter name."""
        total = torch.zeros_like(self.scales)
        for share in self.shares.values():
            own = {name: gradient[name][None] for name in share.parameters if name in gradient}
            if len(own) == len(share.parameters):
                total += share.products_with(own)[0]
            else:  # a layer of which the other has a part or nothing
                rows = share.rows()
                for name, other in own.items():
                    total += as_rows(rows[name]) @ other.flatten()
        return total * self.scales

    def combine(self, weights: Float[Tensor, " groups"]) -> dict[str, Tensor]:
        """Weighted sum of the gradients, by name; parameters without gradient are absent."""
        scaled = weights * self.scales
        return {
            name: gradient
            for share in (*self.shares.values(), *self._others)
            for name, gradient in share.combine(scaled).items()
        }

    def join(self, other: "Measurement") -> "Measurement":
        """Put the gradients of `other` (a later pass of the same model) behind these."""
        shares = []
        for names in _parts({**self.shares, **other.shares}):
            mine, theirs = self.shares.get(names), other.shares.get(names)
            if mine is not None and theirs is not None:
                shares.append(mine.join(theirs))
            else:  # a layer that one pass did not use, or used in another way
                rows = _written(self, names, other), _written(other, names, self)
                joined = {name: torch.cat([part[name] for part in rows]) for name in names}
                shares.append(ExplicitShare(joined, self.groups + other.groups))
        scales = torch.cat((self.scales, other.scales))
        return other.behind(self, Measurement(shares, self.groups + other.groups, scales))

    def behind(self, first: "Measurement", joined: "Measurement") -> "Measurement":  # noqa: ARG002
        """Return what `joined` becomes, in which these gradients stand behind those of `first`."""
        return joined


def _parts(keys: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Join sets of parameters that overlap, in the order they come in."""
    parts: list[tuple[str, ...]] = []
    for key in keys:
        touching = [part for part in parts if not set(part).isdisjoint(key)]
        if touching == [key]:
            continue
        parts = [part for part in parts if part not in touching]
        parts.append(tuple(sorted({*key, *(name for part in touching for name in part)})))
    return parts


def _written(
    measured: Measurement, names: tuple[str, ...], other: Measurement
) -> dict[str, Float[Tensor, "groups ..."]]:
    """Write gradients out; zero where there are none, in the shape of the other's."""
    found: dict[str, Tensor] = {}
    for each in (other, measured):
        for share in each.shares.values():
            if not set(share.parameters).isdisjoint(names):
                rows = share.rows()
                if each is other:
                    shape = len(measured)
                    rows = {n: r.new_zeros(()).expand(shape, *r.shape[1:]) for n, r in rows.items()}
                found |= rows
    return found
