"""Everything counted while a run goes on: what its record will hold."""

import dataclasses
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from recollect.experiments.records.record import CurvePoint, MemoryPoint
from recollect.experiments.tracking.trace import Trace
from recollect.learner import Learner, StepReport

_UNCOUNTED = 64  # steps whose reports are kept before they are counted together
_QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass
class Tally:
    """Counts of a run so far. It goes into checkpoints and comes back the same.

    Nothing here depends on when it was saved: sums of floats are made one by one, in the order of
    the stream.

    Attributes:
        rows: Right answers on each segment, after each segment.
        curve: Any-time test counts.
        memory: What the memory held over time.
        prequential_correct: Incoming examples that were right before they were learnt.
        prequential_total: Incoming examples.
        step_micros: Microseconds of each step.
        evicted: Slots lost since the last point of `memory`, by class.
        evicted_age: Sum of the ages of those.
        evicted_score: Sum of their scores.
        learn_seconds: Time in the stream and in `observe`.
        wall_seconds: Time since the start, over all parts.
        cpu_seconds: Likewise of the processor.
        peak_bytes: Highest resident memory of all parts.
        num_resumes: How often the run was continued.
        places: Processor and threads of each part, one entry as long as they stay the same.
        started_at: UTC, ISO 8601.
        trace: What trackers are told, if there are any.
    """

    rows: list[list[int]] = field(default_factory=list)
    curve: list[CurvePoint] = field(default_factory=list)
    memory: list[MemoryPoint] = field(default_factory=list)
    prequential_correct: int = 0
    prequential_total: int = 0
    step_micros: list[int] = field(default_factory=list)
    evicted: Counter[int] = field(default_factory=Counter)
    evicted_age: int = 0
    evicted_score: float = 0.0
    learn_seconds: float = 0.0
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_bytes: int = 0
    num_resumes: int = 0
    places: list[tuple[str, int]] = field(default_factory=list)
    started_at: str = ""
    trace: Trace | None = None
    _uncounted: list[tuple[StepReport, Tensor]] = field(default_factory=list)

    def begin_part(self, cpu: str, threads: int) -> None:
        """Note where the run goes on: another processor or other threads round otherwise."""
        if self.places[-1:] != [(cpu, threads)]:
            self.places.append((cpu, threads))

    def count_step(
        self, report: StepReport, labels: Tensor, *, seconds: float, learn_seconds: float
    ) -> None:
        """Note one step; its tensors are looked at later, many steps at a time."""
        self.step_micros.append(int(seconds * 1e6))
        self.learn_seconds += learn_seconds
        self._uncounted.append((report, labels))
        if len(self._uncounted) == _UNCOUNTED:
            self.catch_up()

    def catch_up(self) -> None:
        """Count the steps noted since the last time."""
        if not self._uncounted:
            return
        outputs = torch.cat([report.updates[0].incoming_outputs for report, _ in self._uncounted])
        labels = torch.cat([labels for _, labels in self._uncounted])
        self.prequential_correct += int((outputs.argmax(1) == labels.to(outputs.device)).sum())
        self.prequential_total += len(labels)
        written = [report.written for report, _ in self._uncounted]
        if self.trace is not None:
            micros = self.step_micros[-len(self._uncounted) :]
            for (report, _), taken in zip(self._uncounted, micros, strict=True):
                self.trace.count(report, taken / 1e6)
        self._uncounted.clear()
        self.evicted.update(torch.cat([step.evicted_labels for step in written]).tolist())
        self.evicted_age += int(torch.cat([step.evicted_ages for step in written]).sum())
        for score in torch.cat([step.evicted_scores for step in written]).tolist():
            self.evicted_score += score

    def look_into_memory(self, learner: Learner) -> None:
        """Note what the memory holds now, and who left it since the last look."""
        self.catch_up()
        memory = learner.memory
        if memory is None:
            return
        counts = memory.counts_by_class()
        num_evicted = self.evicted.total()
        is_scored = learner.storage is not None and learner.storage.has_scores
        self.memory.append(
            MemoryPoint(
                seen=learner.seen,
                classes=tuple(counts),
                counts=tuple(counts.values()),
                age_quantiles=_quantiles(memory.ages()),
                replay_quantiles=_quantiles(memory.times_replayed[: len(memory)]),
                evicted_classes=tuple(sorted(self.evicted)),
                evicted_counts=tuple(self.evicted[label] for label in sorted(self.evicted)),
                evicted_mean_age=self.evicted_age / num_evicted if num_evicted else None,
                evicted_mean_score=(
                    self.evicted_score / num_evicted if num_evicted and is_scored else None
                ),
            )
        )
        self.evicted, self.evicted_age, self.evicted_score = Counter(), 0, 0.0

    def mark_point(self, learner: Learner, segments: tuple[str, ...]) -> None:
        """Make a point for trackers of the steps since the last one, and of a look made just now.

        Args:
            learner: As it is now.
            segments: Names of the segments.
        """
        if self.trace is None:
            return
        self.catch_up()
        look = self.curve[-1] if self.curve and self.curve[-1].seen == learner.seen else None
        is_in = bool(self.memory) and self.memory[-1].seen == learner.seen
        memory = self.memory[-1] if is_in else None
        self.trace.mark(learner.step, learner.seen, look, memory, segments)

    def step_seconds(self) -> tuple[float, float, float]:
        """Return the 50, 90 and 99 % quantiles of a step's time."""
        if not self.step_micros:
            return (0.0, 0.0, 0.0)
        ordered = sorted(self.step_micros)
        last = len(ordered) - 1
        half, most, nearly_all = (ordered[round(share * last)] / 1e6 for share in (0.5, 0.9, 0.99))
        return half, most, nearly_all

    def as_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        self.catch_up()
        content = {
            part.name: getattr(self, part.name)
            for part in dataclasses.fields(self)
            if not part.name.startswith("_")
        }
        content["curve"] = [vars(point) for point in self.curve]
        content["memory"] = [vars(point) for point in self.memory]
        content["evicted"] = sorted(self.evicted.items())
        content["trace"] = None if self.trace is None else self.trace.as_dict()
        return content

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Tally":
        """Build the tally that `as_dict` was called on."""
        tally = cls(**content)
        tally.curve = [CurvePoint(**_tuples(point)) for point in content["curve"]]
        tally.memory = [MemoryPoint(**_tuples(point)) for point in content["memory"]]
        tally.evicted = Counter(dict(content["evicted"]))
        if tally.trace is not None:
            tally.trace = Trace.from_dict(content["trace"])
        tally.places = [(cpu, threads) for cpu, threads in content["places"]]
        return tally


def _quantiles(values: Tensor) -> tuple[float, ...]:
    """Return quantiles with linear interpolation; faster than torch's on a few hundred values."""
    if not len(values):
        return ()
    ordered: list[int] = values.sort().values.tolist()
    found = []
    for share in _QUANTILES:
        position = share * (len(ordered) - 1)
        below = int(position)
        above = min(below + 1, len(ordered) - 1)
        found.append(ordered[below] + (position - below) * (ordered[above] - ordered[below]))
    return tuple(found)


def _tuples(point: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(v) if isinstance(v, list) else v for key, v in point.items()}
