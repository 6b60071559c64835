"""Examples that no single tensor holds: of differing shapes, or no tensors at all."""

from collections.abc import Iterator, Sequence
from typing import final

import torch
from torch import Tensor


@final
class Ragged:
    """A batch as a list of examples: tensors of differing shapes, or any Python objects.

    Example:
        >>> batch = Ragged([torch.tensor([1, 2, 3]), torch.tensor([4])])
        >>> len(batch), pad(batch)
        (2, tensor([[1, 2, 3],
                [4, 0, 0]]))
    """

    __slots__ = ("examples",)

    def __init__(self, examples: Sequence[object]) -> None:
        self.examples = tuple(examples)

    def __len__(self) -> int:
        return len(self.examples)

    def __iter__(self) -> Iterator[object]:
        return iter(self.examples)

    def __repr__(self) -> str:
        kinds = sorted({type(example).__name__ for example in self.examples})
        return f"Ragged({len(self)} examples of {', '.join(kinds) or 'nothing'})"

    def take(self, indices: Tensor) -> "Ragged":
        """Return the examples at `indices`."""
        return Ragged([self.examples[index] for index in indices.tolist()])

    def cut(self, start: int, stop: int) -> "Ragged":
        """Return some neighbouring examples."""
        return Ragged(self.examples[start:stop])

    def tensors(self) -> list[Tensor]:
        """List the examples that are tensors: all of them or none."""
        return [example for example in self.examples if isinstance(example, Tensor)]


def as_one_tensor_if_alike(examples: Sequence[Tensor]) -> "Tensor | Ragged":
    """Stack examples of one shape; keep others as they are."""
    first = examples[0]
    if all(example.shape == first.shape for example in examples):
        return torch.stack(list(examples))
    return Ragged(examples)


def pad(batch: Ragged) -> Tensor:
    """Lay examples of differing shapes into one tensor, with zeros at their ends.

    Raises:
        TypeError: The examples are not tensors of one dtype.
        ValueError: They differ in their number of dimensions.
    """
    tensors = batch.tensors()
    if len(tensors) < len(batch) or len({tensor.dtype for tensor in tensors}) > 1:
        raise TypeError(
            f"{batch!r} cannot be padded: pass a `transform` that turns a list of such examples "
            "into tensors, or a `collate` of your own."
        )
    if len({tensor.ndim for tensor in tensors}) > 1:
        raise ValueError(
            f"examples have {sorted({tensor.ndim for tensor in tensors})} dimensions; padding "
            "needs the same number in each. Pass a `collate` of your own."
        )
    sizes = [max(sides) for sides in zip(*(tensor.shape for tensor in tensors), strict=True)]
    padded = tensors[0].new_zeros(len(tensors), *sizes)
    for number, tensor in enumerate(tensors):
        padded[number][tuple(slice(side) for side in tensor.shape)] = tensor
    return padded
