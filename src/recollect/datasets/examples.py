"""What every data set becomes: inputs and labels of equal length."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Examples:
    """Inputs in their own dtype (images stay uint8) and int64 labels, first dimension examples."""

    inputs: Tensor
    labels: Tensor

    def __post_init__(self) -> None:
        if len(self.inputs) != len(self.labels):
            raise ValueError(
                f"`labels` has {len(self.labels)} entries for {len(self.inputs)} `inputs`; "
                "pass one label per example."
            )

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, indices: Tensor) -> "Examples":
        """Return the examples at `indices`, in that order."""
        return Examples(self.inputs[indices], self.labels[indices])


@dataclass(frozen=True)
class LabelledData:
    """A data set as its makers split it."""

    name: str
    train: Examples
    test: Examples
    class_names: tuple[str, ...]
