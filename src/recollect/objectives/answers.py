"""What the model answered in one pass, with incoming and replayed examples apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from recollect import nested

_NO_CLASSES: Final = torch.empty(0, dtype=torch.int64)


@dataclass(frozen=True)
class Part:
    """Examples of one origin; there may be none.

    Attributes:
        outputs: What the model answered: logits, or whatever it returns, a row per example. With
            two views, the second view of all examples follows the first.
        labels: One per example.
        columns: What the memory keeps of replayed examples under the names that the objective
            declared; empty for incoming ones.
    """

    outputs: Any
    labels: Tensor
    columns: Mapping[str, Tensor] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.labels.shape[0]


@dataclass(frozen=True)
class Answers:
    """All that an objective is given.

    Attributes:
        outputs: What the model answered to all examples of the pass.
        labels: One per example.
        is_replayed: Whether each example comes from memory.
        columns: As in `Part`, one row per replayed example.
        classes_seen: The classes of the stream so far, this batch included, in ascending order; for
            objectives that declare `needs_classes_seen`.
        views: How many outputs there are of each example.
    """

    outputs: Any
    labels: Tensor
    is_replayed: Sequence[bool]
    columns: Mapping[str, Tensor] = field(default_factory=dict)
    classes_seen: Int64[Tensor, " classes"] = _NO_CLASSES
    views: int = 1

    @cached_property
    def incoming(self) -> Part:
        """The examples that have just arrived."""
        return self._part(replayed=False)

    @cached_property
    def replayed(self) -> Part:
        """The examples from memory."""
        return self._part(replayed=True)

    def in_order(
        self, of_incoming: Float[Tensor, " incoming"], of_replayed: Float[Tensor, " replayed"]
    ) -> Float[Tensor, " examples"]:
        """Put what was found for the two parts into the order of the examples."""
        if not len(self.replayed):
            return of_incoming
        if not len(self.incoming):
            return of_replayed
        joined = torch.cat((of_incoming, of_replayed))
        places = [*self._indices(replayed=False), *self._indices(replayed=True)]
        if places == sorted(places):
            return joined
        return joined[torch.tensor(places, device=joined.device).argsort()]

    def _indices(self, *, replayed: bool) -> list[int]:
        return [i for i, flag in enumerate(self.is_replayed) if flag is replayed]

    def _part(self, *, replayed: bool) -> Part:
        chosen = self._indices(replayed=replayed)
        columns = self.columns if replayed else {}
        count = len(self.is_replayed)
        if len(chosen) == count:
            return Part(self.outputs, self.labels, columns)
        which = torch.tensor(chosen, dtype=torch.int64)
        rows = torch.cat([which + view * count for view in range(self.views)])
        outputs = nested.map_leaves(
            lambda leaf: leaf.index_select(0, rows.to(leaf.device)), self.outputs
        )
        return Part(outputs, self.labels[which.to(self.labels.device)], columns)
