"""Embedding tables: the gradient of an example touches only the rows it looked up."""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from typing_extensions import override

from recollect.gradients.groups import Groups
from recollect.gradients.share import Share


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
        width = self._cotangents.shape[2]
        tables = self._cotangents.new_zeros(len(self.groups) * self._num_entries, width)
        sizes = torch.tensor(self.groups.sizes, device=self._indices.device)
        owner = torch.repeat_interleave(sizes)[:, None] * self._num_entries
        tables.index_add_(0, (self._indices + owner).flatten(), self._cotangents.flatten(0, 1))
        return {self._weight: tables.reshape(len(self.groups), self._num_entries, width)}
