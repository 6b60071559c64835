"""A stretch of the stream with one distribution. Evaluators know it, learners do not."""

from dataclasses import dataclass, field

from torch import Tensor

from recollect.streams.transforms import InputTransform, Unchanged


@dataclass(frozen=True)
class Segment:
    """Name, classes and input transform of one stretch of the stream.

    Args:
        name: Its name in tables and messages, such as `"classes 0, 1"`.
        classes: The labels that occur in it, in ascending order.
        transform: What is done to its inputs. Apply the same to the test set of the segment.
    """

    name: str
    classes: tuple[int, ...]
    transform: InputTransform = field(default_factory=Unchanged)


def classes_in(labels: Tensor) -> list[int]:
    """Return the classes that occur in `labels`, ascending."""
    return sorted(set(labels.tolist()))
