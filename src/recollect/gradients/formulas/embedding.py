"""Embedding tables: the gradient of an example touches only the rows it looked up."""

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from typing_extensions import override

from recollect.errors import UnsupportedModuleError
from recollect.gradients.formulas.table import formula
from recollect.gradients.formulas.visit import Visit
from recollect.gradients.groups import Groups
from recollect.gradients.rows.layout import RowLabels
from recollect.gradients.share import RowSum, Share, add_row_products


@final
class EmbeddingShare(Share):
    """Share of a table lookup: <g_i, g_j> adds d_it . d_js where both looked up the same entry."""

    def __init__(
        self,
        indices: Int[Tensor, "examples positions"],
        cotangents: Float[Tensor, "examples positions width"],
        *,
        weight: str,
        num_entries: int,
        padding_index: int | None,
        groups: Groups,
        limit_bytes: int,
    ) -> None:
        if padding_index is not None:  # torch gives the padding entry no gradient
            cotangents = cotangents * (indices != padding_index).unsqueeze(-1)
        self.groups = groups
        self.parameters = (weight,)
        self._weight, self._num_entries = weight, num_entries
        self._indices, self._cotangents = indices, cotangents
        self._limit_bytes = limit_bytes

    @override
    def add_gram(self, by_example: Tensor, by_group: Tensor) -> None:
        tables = self._small_tables()
        if tables is None:
            self._add_products(by_example)
        else:
            add_row_products(by_group, tables)

    @override
    def add_row(self, row: RowSum) -> None:
        tables = self._small_tables()
        if tables is None:
            self._add_products(row.by_example)
        else:
            row.add_rows(tables)

    def _small_tables(self) -> Float[Tensor, "groups entries width"] | None:
        """Write out the entries that somebody looked up; None if they are too many."""
        entries, numbers = torch.unique(self._indices, return_inverse=True)
        size = len(self.groups) * entries.numel() * self._cotangents[0, 0].nbytes
        return self._tables(numbers, entries.numel()) if size <= self._limit_bytes else None

    def _add_products(self, by_example: Tensor) -> None:
        examples, positions = self._indices.shape
        looked_up, flat = self._indices.flatten(), self._cotangents.flatten(0, 1)
        row_bytes = positions * looked_up.numel() * flat.element_size()
        chunk = max(1, self._limit_bytes // row_bytes)  # examples at a time
        for start in range(0, examples, chunk):
            part = slice(start * positions, (start + chunk) * positions)
            same = looked_up[part, None] == looked_up[None, :]
            products = (flat[part] @ flat.T) * same
            shape = (-1, positions, examples, positions)
            by_example[start : start + chunk] += products.reshape(shape).sum((1, 3))

    @override
    def combine(self, weights: Float[Tensor, " groups"]) -> dict[str, Tensor]:
        scaled = self._cotangents * self.groups.spread(weights)[:, None, None]
        table = scaled.new_zeros(self._num_entries, scaled.shape[2])
        return {self._weight: table.index_add_(0, self._indices.flatten(), scaled.flatten(0, 1))}

    @override
    def rows(self) -> dict[str, Tensor]:
        return {self._weight: self._tables(self._indices, self._num_entries)}

    def _tables(
        self, indices: Int[Tensor, "examples positions"], num_entries: int
    ) -> Float[Tensor, "groups entries width"]:
        """Add up what each group found at each entry."""
        width = self._cotangents.shape[2]
        tables = self._cotangents.new_zeros(len(self.groups) * num_entries, width)
        sizes = torch.tensor(self.groups.sizes, device=indices.device)
        owner = torch.repeat_interleave(sizes)[:, None] * num_entries
        tables.index_add_(0, (indices + owner).flatten(), self._cotangents.flatten(0, 1))
        return tables.reshape(len(self.groups), num_entries, width)


# --- nodes ----------------------------------------------------------------------------------------


@formula("EmbeddingBackward0")
def embedding(visit: Visit) -> Sequence[Share] | None:
    """A table, looked up at any number of positions."""
    _refuse_sparse(visit)
    layout, d = visit.rows_layout, visit.gradient
    if layout is None or layout.dim == d.ndim - 1 or visit.saved("scale_grad_by_freq"):
        return None
    padding = visit.saved("padding_idx")
    entries = visit.shape(0)[0]
    return [
        EmbeddingShare(
            layout.arranged(visit.saved("indices")).flatten(1),
            layout.arranged(d.to(visit.dtype(0))).flatten(1, -2),
            weight=visit.slots[0],
            num_entries=entries,
            padding_index=padding if 0 <= padding < entries else None,
            groups=visit.groups,
            limit_bytes=visit.limit_bytes,
        )
    ]


@formula("EmbeddingBagBackward0")
def embedding_bag(visit: Visit) -> Sequence[Share] | None:
    """Sums or means of bags of entries: each entry of a bag has the bag's gradient."""
    _refuse_sparse(visit)
    layout = visit.rows_layout
    mode = visit.saved("mode")
    if layout is None or layout.dim != 0 or mode > 1 or set(visit.slots) != {0}:
        return None
    if visit.saved("scale_grad_by_freq") or visit.saved("per_sample_weights") is not None:
        return None
    indices, offsets = visit.saved("indices"), visit.saved("offsets")
    padding = visit.saved("padding_idx")
    d = visit.gradient.to(visit.dtype(0))
    bags = torch.arange(len(indices), device=indices.device)
    bags = torch.searchsorted(offsets[: len(d)].contiguous(), bags, right=True) - 1
    counted = indices != padding
    if mode == 1:
        sizes = torch.zeros(len(d), dtype=torch.int64, device=d.device)
        d = d / sizes.index_add_(0, bags, counted.long()).clamp(min=1)[:, None]
    owners = layout.owners().to(bags.device)[bags]
    rows = RowLabels(0, visit.groups.num_examples, torch.where(counted, owners, -1).cpu())
    return [
        EmbeddingShare(
            rows.arranged(indices),
            rows.arranged(d[bags]),
            weight=visit.slots[0],
            num_entries=visit.shape(0)[0],
            padding_index=None,
            groups=visit.groups,
            limit_bytes=visit.limit_bytes,
        )
    ]


def _refuse_sparse(visit: Visit) -> None:
    if visit.saved("sparse"):
        raise UnsupportedModuleError(
            f"parameter `{visit.slots[0]}` has sparse gradients, which cannot be weighed by "
            "example; build its layer with `sparse=False`."
        )
