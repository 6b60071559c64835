"""Count the right answers on each segment."""

from collections.abc import Callable, Iterable
from typing import Literal, Protocol

from torch import Tensor

from recollect.datasets import Examples


class HeldOut(Protocol):
    """A segment's examples that were not streamed."""

    @property
    def test(self) -> Examples:
        """What final numbers are read from, once."""

    @property
    def validation(self) -> Examples:
        """What hyper-parameters are chosen on."""


def evaluate(
    predict: Callable[[Tensor], Tensor],
    segments: Iterable[HeldOut],
    *,
    batch_size: int = 256,
    on: Literal["test", "validation"] = "test",
) -> list[tuple[int, int]]:
    """Count correct predictions on each segment.

    Args:
        predict: Maps stored inputs to logits (examples, classes), as `learner.predict` does. It
            must not learn.
        segments: Such as `benchmark.segments`. One is held in memory at a time.
        batch_size: Examples a call of `predict`.
        on: Which held-out examples. Choose hyper-parameters on `"validation"` only.

    Returns:
        `(correct, total)` of each segment. With a tie, the lowest class is the answer.
    """
    if batch_size < 1:
        raise ValueError(f"`batch_size` is {batch_size}; pass at least 1.")
    counts = []
    for segment in segments:
        held_out = segment.test if on == "test" else segment.validation
        if not len(held_out):
            raise ValueError(
                f"`on` is {on!r}, but a segment has 0 {on} examples; "
                "use a protocol that holds some out."
            )
        correct = 0
        for start in range(0, len(held_out), batch_size):
            batch = slice(start, start + batch_size)
            answers = predict(held_out.inputs[batch]).argmax(dim=1)
            correct += int((answers == held_out.labels[batch].to(answers.device)).sum())
        counts.append((correct, len(held_out)))
    return counts
