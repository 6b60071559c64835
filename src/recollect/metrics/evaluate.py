"""Count the right answers on each segment."""

from collections.abc import Callable, Iterable
from typing import Final, Literal, Protocol, runtime_checkable

from torch import Tensor

from recollect.datasets import Examples

# Values of input per batch: 256 images of 32 x 32. A network's maps are some times larger than its
# inputs, and beyond this they leave the cache, so that each example takes longer.
_MOST_VALUES: Final = 3 << 18
_MOST_EXAMPLES: Final = 256


@runtime_checkable
class HeldOut(Protocol):
    """A segment's examples that were not streamed."""

    @property
    def test(self) -> Examples:
        """For final numbers; read it once."""

    @property
    def validation(self) -> Examples:
        """For choosing hyper-parameters."""


def evaluate(
    predict: Callable[[Tensor], Tensor],
    segments: Iterable[HeldOut],
    *,
    batch_size: int | None = None,
    on: Literal["test", "validation"] = "test",
) -> list[tuple[int, int]]:
    """Count correct predictions on each segment.

    Args:
        predict: Maps stored inputs to logits (examples, classes), as `learner.predict` does. It
            must not learn.
        segments: Such as `benchmark.segments`. One is held in memory at a time.
        batch_size: Examples per call of `predict`; None takes `fitting_batch_size`.
        on: Which held-out examples. Choose hyper-parameters on `"validation"` only.

    Returns:
        `(correct, total)` of each segment. With a tie, the lowest class is the answer.
    """
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"`batch_size` is {batch_size}; pass at least 1.")
    if on not in ("test", "validation"):
        raise ValueError(f"`on` is {on!r}; choose 'test' or 'validation'.")
    counts = []
    for segment in segments:
        held_out = segment.test if on == "test" else segment.validation
        if not len(held_out):
            raise ValueError(
                f"`on` is {on!r}, but a segment has 0 {on} examples; "
                "use a protocol that holds some out."
            )
        correct, size = 0, batch_size or fitting_batch_size(held_out.inputs)
        for start in range(0, len(held_out), size):
            batch = slice(start, start + size)
            answers = predict(held_out.inputs[batch]).argmax(dim=1)
            correct += int((answers == held_out.labels[batch].to(answers.device)).sum())
        counts.append((correct, len(held_out)))
    return counts


def fitting_batch_size(inputs: Tensor) -> int:
    """Return how many of these examples to pass at once when nothing is learnt: at most 256."""
    values = max(1, inputs[0].numel()) if len(inputs) else 1
    return max(1, min(_MOST_EXAMPLES, _MOST_VALUES // values))
