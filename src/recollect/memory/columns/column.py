"""What every way of keeping examples can do."""

from abc import ABC, abstractmethod

from jaxtyping import Int64
from torch import Tensor

from recollect.ragged import Ragged

Examples = Tensor | Ragged


class Column(ABC):
    """One input of the model, by slot. Mechanics only: the memory says which slot."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of the examples held."""

    @abstractmethod
    def check_kind(self, examples: Examples) -> None:
        """Refuse examples that cannot be kept here in any shape."""

    def check_shape(self, examples: Tensor) -> None:  # noqa: B027 - most take any
        """Refuse examples of another shape, where that is more likely a mistake than a sequence."""

    @abstractmethod
    def takes(self, examples: Examples) -> bool:
        """Whether they fit as they are; else they need the column that `loosened` returns."""

    @abstractmethod
    def loosened(self, filled: int) -> "Column":
        """Return a column with the first `filled` examples that takes any shape."""

    @property
    def row_bytes(self) -> int:
        """Bytes of a slot whatever is in it; the examples' own come on top."""
        return 0

    def cut(self, capacity: int) -> "Column":  # noqa: ARG002
        """Return a column that keeps room for the first slots alone; the others hold nothing."""
        return self

    @abstractmethod
    def sizes(self, examples: Examples) -> list[int]:
        """Bytes that each example would take beyond those taken already."""

    @abstractmethod
    def sizes_held(self, filled: int) -> list[int]:
        """Bytes that erasing each of the first `filled` examples would free."""

    @abstractmethod
    def read(self, slots: Int64[Tensor, " slots"]) -> Examples:
        """Return the examples in `slots`."""

    @abstractmethod
    def write(self, slots: Int64[Tensor, " slots"], examples: Examples) -> None:
        """Put examples into distinct slots."""

    @abstractmethod
    def erase(self, slots: list[int]) -> None:
        """Overwrite what is in `slots`, and free it."""

    @abstractmethod
    def state(self, filled: int) -> dict[str, Tensor]:
        """Return the first `filled` examples as tensors, by the names that `from_state` reads."""
