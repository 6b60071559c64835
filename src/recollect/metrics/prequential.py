"""Test, then train: accuracy on each batch before it is learnt."""

from collections.abc import Mapping
from typing import Any, final


@final
class PrequentialAccuracy:
    """Running accuracy over predictions made before their examples were learnt.

    Example:
        >>> running = PrequentialAccuracy()
        >>> running.add(correct=1, total=10)
        >>> running.add(correct=2, total=2)
        >>> running.accuracy
        0.25
    """

    def __init__(self, *, correct: int = 0, total: int = 0) -> None:
        self.correct = 0
        self.total = 0
        if correct or total:
            self.add(correct=correct, total=total)

    def add(self, *, correct: int, total: int) -> None:
        """Count a batch that was predicted before it was learnt."""
        if total < 1 or not 0 <= correct <= total:
            raise ValueError(
                f"`correct` is {correct} of `total` {total}; pass a positive total and at most as "
                "many correct."
            )
        self.correct += correct
        self.total += total

    @property
    def accuracy(self) -> float:
        """Share of correct predictions so far, from 0 to 1."""
        if not self.total:
            raise ValueError("`total` is 0; `add` a batch first.")
        return self.correct / self.total

    def as_dict(self) -> dict[str, int]:
        """Return the counts, ready for JSON."""
        return {"correct": self.correct, "total": self.total}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "PrequentialAccuracy":
        """Build the count that `as_dict` was called on."""
        return cls(correct=record["correct"], total=record["total"])
