"""What a sweep reports while it goes on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from recollect.experiments.specs.request import Request

Kind = Literal[
    "ready",
    "started",
    "anew",
    "progress",
    "done",
    "failed",
    "pruned",
    "stopped",
    "died",
    "elsewhere",
    "store-error",
]


@dataclass(frozen=True)
class Event:
    """Something that happened to a run.

    Attributes:
        kind: What: it started, starts anew because its checkpoint cannot be continued, made
            progress, is done, failed, was pruned, saved its place and stopped, its worker died and
            it will be continued, or another command is running it.
        request: Which run.
        segment: Number of the segment it is in, from 1.
        num_segments: How many there are.
        seen: Stream examples observed.
        num_examples: How many there are.
        accuracy: Average accuracy, at the last look or at the end.
        forgetting: Forgetting at the end, as cited (note P9).
        examples_per_second: Of learning alone.
        seconds: Wall time of the run.
        is_new: Whether it was run now; False if another command had done it meanwhile.
        message: Traceback or reason.
        started_at: Of a tracked run, when it began.
        points: For trackers, each with `step` and `numbers`: those since the last progress, or all
            of them when the run was continued.
    """

    kind: Kind
    request: Request
    segment: int | None = None
    num_segments: int | None = None
    seen: int | None = None
    num_examples: int | None = None
    accuracy: float | None = None
    forgetting: float | None = None
    examples_per_second: float | None = None
    seconds: float | None = None
    is_new: bool | None = None
    message: str | None = None
    started_at: str | None = None
    points: Sequence[Mapping[str, Any]] | None = None

    def facts(self) -> dict[str, object]:
        """Return what is known, ready for JSON."""
        cell = self.request.cell
        run: dict[str, object] = {
            "event": self.kind,
            "benchmark": cell.benchmark,
            "method": cell.method,
            "capacity": cell.capacity,
            "seed": self.request.seed,
            "spec_hash": cell.spec_hash,
            "protocol": cell.protocol,
        }
        more = {key: value for key, value in vars(self).items() if key not in ("kind", "request")}
        return run | {key: value for key, value in more.items() if value is not None}
