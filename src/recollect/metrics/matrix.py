"""How much of each segment is known after each segment, as counts."""

from collections.abc import Mapping
from typing import Any, final


@final
class AccuracyMatrix:
    """Correct answers and questions for every pair (trained up to, tested on) of segments.

    The entry a_(i,j) is the accuracy on segment j after training on segments 0 to i. Counts are
    kept, not rounded shares, so a short last batch weighs what it holds. Segments are
    counted from 0.

    Example:
        >>> matrix = AccuracyMatrix()
        >>> matrix.add(trained_on=0, tested_on=0, correct=9, total=10)
        >>> matrix.accuracy(trained_on=0, tested_on=0)
        0.9
        >>> AccuracyMatrix.from_dict(matrix.as_dict()) == matrix
        True
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[int, int], tuple[int, int]] = {}

    def add(self, *, trained_on: int, tested_on: int, correct: int, total: int) -> None:
        """Add counts to a cell. Counts of the same cell add up, so batches may come one by one.

        Raises:
            ValueError: A segment is negative, `total` is not positive, or `correct` exceeds it.
        """
        if trained_on < 0 or tested_on < 0:
            raise ValueError(
                f"`trained_on` is {trained_on} and `tested_on` is {tested_on}; "
                "count segments from 0."
            )
        if total < 1 or not 0 <= correct <= total:
            raise ValueError(
                f"`correct` is {correct} of `total` {total}; pass a positive total and at most as "
                "many correct."
            )
        old_correct, old_total = self._counts.get((trained_on, tested_on), (0, 0))
        self._counts[trained_on, tested_on] = (old_correct + correct, old_total + total)

    @property
    def num_evaluations(self) -> int:
        """Number of segments trained on so far: one more than the highest `trained_on`."""
        return 1 + max((trained_on for trained_on, _ in self._counts), default=-1)

    def has(self, *, trained_on: int, tested_on: int) -> bool:
        """Say whether the cell holds counts."""
        return (trained_on, tested_on) in self._counts

    def counts(self, *, trained_on: int, tested_on: int) -> tuple[int, int]:
        """Return correct and total of a cell.

        Raises:
            ValueError: The cell was never added.
        """
        if not self.has(trained_on=trained_on, tested_on=tested_on):
            raise ValueError(
                f"The matrix has no counts for `trained_on` {trained_on}, `tested_on` {tested_on}; "
                "evaluate that segment at that time and `add` the counts."
            )
        return self._counts[trained_on, tested_on]

    def accuracy(self, *, trained_on: int, tested_on: int) -> float:
        """Return a_(trained_on, tested_on), from 0 to 1."""
        correct, total = self.counts(trained_on=trained_on, tested_on=tested_on)
        return correct / total

    def as_dict(self) -> dict[str, Any]:
        """Return the counts, ready for JSON: rows of trained_on, tested_on, correct, total."""
        return {"cells": [[*cell, *self._counts[cell]] for cell in sorted(self._counts)]}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "AccuracyMatrix":
        """Build the matrix that `as_dict` was called on."""
        matrix = cls()
        for trained_on, tested_on, correct, total in record["cells"]:
            matrix.add(trained_on=trained_on, tested_on=tested_on, correct=correct, total=total)
        return matrix

    def __eq__(self, other: object) -> bool:
        """Compare counts."""
        return isinstance(other, AccuracyMatrix) and self._counts == other._counts
