"""Which examples belong together: consecutive groups of a batch."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Run:
    """Neighbouring groups of one size: `count` groups of `size` examples from example `start`."""

    start: int
    count: int
    size: int

    @property
    def stop(self) -> int:
        """The example behind the last one."""
        return self.start + self.count * self.size


@dataclass(frozen=True)
class Groups:
    """Cut a batch into consecutive groups; a group's gradient is the sum over its examples.

    Ten incoming examples and three replayed ones: `Groups((10, 1, 1, 1))`, four gradients.
    """

    sizes: tuple[int, ...]

    @property
    def num_examples(self) -> int:
        """Length of the batch."""
        return sum(self.sizes)

    def __len__(self) -> int:
        return len(self.sizes)

    def __add__(self, other: "Groups") -> "Groups":
        return Groups(self.sizes + other.sizes)

    @property
    def has_singles_behind_first(self) -> bool:
        """Whether all groups but the first are single examples."""
        return self.num_examples - self.sizes[0] == len(self.sizes) - 1

    def sums_and_singles(self) -> tuple["Groups", "Groups"]:
        """Cut into groups of several examples and the single ones behind them.

        If they do not come in this order, all count as the former.
        """
        singles = next((i for i, size in enumerate(self.sizes) if size == 1), len(self.sizes))
        if any(size > 1 for size in self.sizes[singles:]):
            singles = len(self.sizes)
        return Groups(self.sizes[:singles]), Groups(self.sizes[singles:])

    def runs(self) -> tuple[Run, ...]:
        """Return maximal runs of equally large groups: each is one batched product."""
        return _runs(self.sizes)

    def sum(self, per_example: Float[Tensor, "examples ..."]) -> Float[Tensor, "groups ..."]:
        """Add up what belongs to the same group."""
        if len(self) == self.num_examples:
            return per_example
        shape = (len(self), *per_example.shape[1:])
        return (self.membership(per_example) @ as_rows(per_example)).reshape(shape)

    def spread(self, per_group: Float[Tensor, " groups"]) -> Float[Tensor, " examples"]:
        """Give every example the value of its group."""
        if len(self) == self.num_examples:
            return per_group
        return per_group @ self.membership(per_group)

    def membership(self, like: Tensor) -> Float[Tensor, "groups examples"]:
        """The 0/1 matrix that adds up the examples of each group."""
        return _membership(self.sizes, like.dtype, like.device)


def as_rows(values: Float[Tensor, "rows ..."]) -> Float[Tensor, "rows width"]:
    """Make every entry one row of a matrix; that of a parameter without dimensions is a number."""
    return values.flatten(1) if values.ndim > 1 else values.unsqueeze(1)


@lru_cache(maxsize=64)
def _runs(sizes: tuple[int, ...]) -> tuple[Run, ...]:
    runs, start = [], 0
    for size, members in groupby(sizes):
        runs.append(Run(start, len(list(members)), size))
        start = runs[-1].stop
    return tuple(runs)


@lru_cache(maxsize=64)
def _membership(sizes: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    owner = torch.repeat_interleave(torch.tensor(sizes))
    return torch.nn.functional.one_hot(owner, len(sizes)).T.to(device, dtype).contiguous()
