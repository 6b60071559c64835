"""Which example arrives when, and where one batch ends and the next begins."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

Batching = Literal["by segment", "straight through"]


@dataclass(frozen=True, eq=False)
class Plan:
    """An order of arrival, cut into batches.

    Args:
        order: Index into the source of the example at each position.
        origin: Number of the segment that each position belongs to.
        num_segments: How many segments there are, empty ones included.
        batch_size: Examples in a full batch.
        batching: `"by segment"` starts a new batch at every segment, so the last batch of a segment
            may be short and no batch holds examples of two. `"straight through"` cuts every
            `batch_size` examples, as a stream without sharp boundaries must.
    """

    order: Tensor
    origin: Tensor
    num_segments: int
    batch_size: int
    batching: Batching

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise ValueError(f"`batch_size` is {self.batch_size}; pass at least 1.")
        if len(self.order) == 0:
            raise ValueError("`order` has 0 entries; a stream needs at least one example.")

    @classmethod
    def by_segment(cls, indices: Sequence[Tensor], *, batch_size: int) -> "Plan":
        """Put segments one after the other, each given by its source indices in arrival order."""
        sizes = torch.tensor([len(part) for part in indices])
        return cls(
            order=torch.cat(list(indices)),
            origin=torch.repeat_interleave(torch.arange(len(indices)), sizes),
            num_segments=len(indices),
            batch_size=batch_size,
            batching="by segment",
        )

    @property
    def segment_sizes(self) -> list[int]:
        """Number of examples of each segment."""
        sizes: list[int] = torch.bincount(self.origin, minlength=self.num_segments).tolist()
        return sizes

    def without_short_batches(self) -> "Plan":
        """Leave out the examples of every batch that is not full, as `drop_last` loaders do."""
        lengths = torch.diff(torch.tensor([0, *self.batch_ends()]))
        is_kept = torch.repeat_interleave(lengths == self.batch_size, lengths)
        return replace(self, order=self.order[is_kept], origin=self.origin[is_kept])

    def batch_ends(self) -> list[int]:
        """Return the position after the last example of each batch."""
        stretches = self.segment_sizes if self.batching == "by segment" else [len(self.order)]
        ends: list[int] = []
        start = 0
        for size in stretches:
            stop = start + size
            ends += range(start + self.batch_size, stop, self.batch_size)
            ends += [stop] if size else []
            start = stop
        return ends
