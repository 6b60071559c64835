"""What came out of one run: numbers and where they come from, nothing formatted."""

from dataclasses import dataclass, field
from typing import Final, Literal

SCHEMA_VERSION: Final = 2  # 1 had the same columns, and no digests
Status = Literal["done", "failed", "pruned"]


@dataclass(frozen=True)
class CurvePoint:
    """Test counts at one moment of the stream.

    Attributes:
        seen: Stream examples observed so far.
        correct: Right answers by segment, over the segments met so far.
        total: Test examples by segment, likewise.
    """

    seen: int
    correct: tuple[int, ...]
    total: tuple[int, ...]

    @property
    def accuracy(self) -> float:
        """Share of right answers, mean over the segments met so far."""
        shares = [c / t for c, t in zip(self.correct, self.total, strict=True)]
        return sum(shares) / len(shares)


@dataclass(frozen=True)
class MemoryPoint:
    """What the memory held at one moment, and what left since the last such moment.

    Attributes:
        seen: Stream examples observed so far.
        classes: Classes with at least one slot, ascending.
        counts: Slots of each.
        age_quantiles: 0, 25, 50, 75 and 100 % quantiles of age, in updates.
        replay_quantiles: Likewise of times replayed.
        evicted_classes: Classes that lost slots since the last point, ascending.
        evicted_counts: How many each lost.
        evicted_mean_age: Mean age of those that left, None if none did.
        evicted_mean_score: Mean replacement score of those that left, None without scores.
    """

    seen: int
    classes: tuple[int, ...]
    counts: tuple[int, ...]
    age_quantiles: tuple[float, ...]
    replay_quantiles: tuple[float, ...]
    evicted_classes: tuple[int, ...] = ()
    evicted_counts: tuple[int, ...] = ()
    evicted_mean_age: float | None = None
    evicted_mean_score: float | None = None


@dataclass(frozen=True)
class Record:
    """One run of one method on one benchmark with one seed.

    A run is identified by `spec_hash`, `seed` and `protocol`. Two runs with the same identity on
    the same kind of machine agree in everything but the times.

    Attributes:
        spec_hash: Stable hash of the whole resolved spec, seed aside.
        protocol: Name of the benchmark protocol.
        benchmark: Name of the benchmark.
        method: Name of the method as the spec calls it.
        seed: Seed of stream, model and learner.
        capacity: Slots of the memory, 0 without one.
        passes: How examples passed the network: joint, separate or grouped.
        spec: The resolved spec as canonical JSON.
        command: A command that runs this cell again.
        status: "done", "failed", or "pruned" by a search for settings.
        error: Traceback of a failed run, why a pruned one was, else None.
        segment_names: What the evaluator calls the segments.
        correct: Right answers after each segment (rows) on each segment (columns).
        total: Test examples of each segment.
        curve: Any-time test counts.
        memory: What the memory held over time; empty without one.
        prequential_correct: Incoming examples the model had right before it learnt from them.
        prequential_total: Incoming examples.
        num_steps: Calls of observe.
        num_examples: Stream examples.
        step_seconds: 50, 90 and 99 % quantiles of the time of one observe.
        learn_seconds: Time spent in observe and in the stream.
        wall_seconds: Wall time of the whole run, over all its parts if it was continued.
        cpu_seconds: CPU time likewise.
        peak_bytes: Peak resident memory of the worker.
        num_resumes: How often the run was continued from a checkpoint.
        threads: Torch threads, of its last part if it was continued with another number.
        versions: recollect, torch, numpy and python, and the digest of our code (`code`).
            The store keeps that code.
        commit: Git commit of the code, "" outside a checkout, with "+" for local changes.
        machine: CPU model, its kind (`kernels`: on the same kind every bit agrees), cores and
            system; no host name. If the run was continued on another processor or with other
            threads, `cpu` names each with its threads.
        started_at: UTC, ISO 8601.
        schema_version: Of this layout.
    """

    spec_hash: str
    protocol: str
    benchmark: str
    method: str
    seed: int
    capacity: int
    passes: str
    spec: str
    command: str
    status: str
    error: str | None
    segment_names: tuple[str, ...]
    correct: tuple[tuple[int, ...], ...]
    total: tuple[int, ...]
    curve: tuple[CurvePoint, ...]
    memory: tuple[MemoryPoint, ...]
    prequential_correct: int
    prequential_total: int
    num_steps: int
    num_examples: int
    step_seconds: tuple[float, float, float]
    learn_seconds: float
    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int
    num_resumes: int
    threads: int
    versions: dict[str, str] = field(default_factory=dict)
    commit: str = ""
    machine: dict[str, str] = field(default_factory=dict)
    started_at: str = ""
    schema_version: int = SCHEMA_VERSION
