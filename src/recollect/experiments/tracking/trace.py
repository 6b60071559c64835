"""Points along a run, for trackers: means over the steps since the last point."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Final

from recollect.experiments.records.record import CurvePoint, MemoryPoint
from recollect.learner import StepReport
from recollect.trackers.numbers import named_memory, step_numbers

POINTS: Final = 200  # along a run, besides those where it is looked at


def point_moments(num_batches: int, looks: Iterable[int]) -> frozenset[int]:
    """Return the numbers of batches after which there is a point."""
    even = {max(1, round(num_batches * k / POINTS)) for k in range(1, POINTS + 1)}
    return frozenset(even) | frozenset(looks)


@dataclass(frozen=True)
class Point:
    """Numbers at one step of a run.

    Attributes:
        step: Number of the step, from 1.
        numbers: By name.
    """

    step: int
    numbers: dict[str, float]


@dataclass
class Trace:
    """The points of a run so far. It goes into checkpoints and comes back the same.

    So a run that is continued tells trackers every point from its beginning: what one of them had
    not written yet when everything was killed is not lost. Trackers pass over what they have.

    Attributes:
        points: In order.
        sums: By name, the sum since the last point, and of how many steps.
    """

    points: list[Point] = field(default_factory=list)
    sums: dict[str, list[float]] = field(default_factory=dict)

    def count(self, report: StepReport, seconds: float) -> None:
        """Add a step."""
        for name, value in (step_numbers(report) | {"seconds/step": seconds}).items():
            total = self.sums.setdefault(name, [0.0, 0.0])
            total[0] += value
            total[1] += 1

    def mark(
        self,
        step: int,
        seen: int,
        look: CurvePoint | None,
        memory: MemoryPoint | None,
        segments: tuple[str, ...],
    ) -> None:
        """Make a point, unless it is there: a run may be stopped just after it.

        Args:
            step: Number of the step.
            seen: Examples observed.
            look: What was known just then, if it was looked at.
            memory: What the memory held just then, likewise.
            segments: Names of the segments.
        """
        if self.points and self.points[-1].step >= step:
            return
        numbers = {name: total / count for name, (total, count) in self.sums.items()}
        numbers["seen"] = float(seen)
        if look is not None:
            numbers |= _accuracies(look, segments)
        if memory is not None:
            gone = dict.fromkeys(memory.evicted_classes, 0)  # a class may have lost its last slot
            counts = gone | dict(zip(memory.classes, memory.counts, strict=True))
            numbers |= named_memory(counts, memory.age_quantiles, memory.replay_quantiles)
        self.points.append(Point(step, numbers))
        self.sums = {}

    def as_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {"points": [vars(point) for point in self.points], "sums": self.sums}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Trace":
        """Build the trace that `as_dict` was called on."""
        return cls([Point(**point) for point in content["points"]], dict(content["sums"]))


def _accuracies(look: CurvePoint, segments: tuple[str, ...]) -> dict[str, float]:
    shares = [correct / total for correct, total in zip(look.correct, look.total, strict=True)]
    named = zip(segments, shares, strict=False)  # those not met yet have no accuracy
    return {"accuracy/average": fmean(shares)} | {
        f"accuracy/{name}": share for name, share in named
    }
