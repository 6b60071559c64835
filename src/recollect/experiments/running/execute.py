"""One run from its beginning, or from where it was, to its record."""

import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import torch
from torch import Tensor

from recollect.errors import CheckpointError, StoreError
from recollect.experiments.records.record import CurvePoint, Record, Status
from recollect.experiments.records.scores import recent_accuracy
from recollect.experiments.running.evaluator import Looker
from recollect.experiments.running.machine import (
    CHECKPOINT_SHARE,
    code,
    commit,
    forget_peak_memory,
    machine,
    peak_memory,
    versions,
)
from recollect.experiments.running.resume import begin_or_continue, save_run
from recollect.experiments.running.tally import Tally
from recollect.experiments.specs.named.precision import casting
from recollect.experiments.specs.request import Request
from recollect.experiments.tracking.trace import Point, Trace, point_moments
from recollect.learner import Learner
from recollect.streams import Stream

# Seconds that a checkpoint is thought to take before one was made: too many rather than too few, so
# that a run of a few seconds makes none.
_FIRST_GUESS: Final = 0.05
_TOLD_EVERY: Final = 0.25  # seconds


@dataclass(frozen=True)
class Progress:
    """Where a run is.

    Attributes:
        segment: Number of the segment it is in, from 1.
        num_segments: How many there are.
        seen: Stream examples observed.
        num_examples: How many there are.
        accuracy: Share of right answers at the last look, mean over the segments met by then.
        examples_per_second: Of learning alone, in this part of the run.
        started_at: When the run began, if it is tracked: it tells an attempt from another.
        points: For trackers, those since the last progress; all of them when the run is continued.
    """

    segment: int
    num_segments: int
    seen: int
    num_examples: int
    accuracy: float | None
    examples_per_second: float
    started_at: str | None = None
    points: tuple[Point, ...] | None = None


class Stopped(Exception):  # noqa: N818 - nothing went wrong
    """The run was asked to stop and has saved where it was."""


class _Pruned(Exception):  # noqa: N818 - nothing went wrong
    """The run is not worth its rest; the message says why."""


def execute(
    request: Request,
    *,
    checkpoints: Path | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_left: Callable[[str], None] = lambda _: None,
    should_stop: Callable[[], bool] = lambda: False,
    checkpoint_share: float = CHECKPOINT_SHARE,
    pause_after: float | None = None,
) -> Record:
    """Make a run, or the rest of it.

    Args:
        request: What to run.
        checkpoints: Folder to keep its place in; it continues from there if it can. None keeps
            nothing.
        on_progress: Called now and then with where the run is, and at its end if it is tracked.
        on_left: Called if the run starts anew though it had a checkpoint, with the reason and where
            that is kept.
        should_stop: Called after each step and while looking. Once it returns True, the run saves
            its place and stops.
        checkpoint_share: Share of the time that saving may take.
        pause_after: Seconds after which it stops where it is saved next, so that it can go on
            elsewhere; None for never.

    Returns:
        The record, of a run that is done, of one that failed with its traceback, or of one that was
        pruned, with the reason.

    Raises:
        Stopped: It was asked to.
        StoreError: Its place cannot be saved.
    """
    run: _Run | None = None
    try:
        run = _Run(request, checkpoints, checkpoint_share, on_left)
        run.go(on_progress, should_stop, float("inf") if pause_after is None else pause_after)
        return run.record()
    except (StoreError, Stopped):
        raise
    except _Pruned as reason:
        assert run is not None
        run.tell_points(on_progress)
        return run.record(str(reason), status="pruned")
    except Exception:
        error = traceback.format_exc()
        if run is not None:
            run.tell_points(on_progress)
        return failed_record(request, error) if run is None else run.record(error)


def failed_record(request: Request, error: str, tally: Tally | None = None) -> Record:
    """Return the record of a run that failed before there was anything to count."""
    return _record(request, tally or Tally(started_at=_now()), error=error)


class _Run:
    """A run in progress."""

    def __init__(
        self,
        request: Request,
        checkpoints: Path | None,
        share: float,
        on_left: Callable[[str], None],
    ) -> None:
        forget_peak_memory()
        self._start, self._cpu_start = time.perf_counter(), time.process_time()
        self._request, self._checkpoints = request, checkpoints
        self._learner: Learner
        benchmark, self._learner, self._schedule, continued = begin_or_continue(
            request, checkpoints, on_left
        )
        self._cast = casting(request.cell.learner.get("dtype", "float32"))
        self._stream: Stream = benchmark.stream
        self._looker = Looker(benchmark, request.cell)
        self._tally = continued or Tally(started_at=_now())
        if request.is_tracked and self._tally.trace is None:
            self._tally.trace = Trace()
        self._marked = point_moments(len(self._stream), self._looker.moments)
        self._points_told = 0
        here = machine()
        self._tally.begin_part(f"{here['cpu']}, {here['kernels']}", torch.get_num_threads())
        self._earlier_wall, self._earlier_cpu = self._tally.wall_seconds, self._tally.cpu_seconds
        self._earlier_peak = self._tally.peak_bytes
        self._learnt_before = self._tally.learn_seconds, self._stream.cursor
        self._share, self._saving_seconds, self._last_cost = share, 0.0, _FIRST_GUESS
        self._next_save = self._when_to_save()

    def go(
        self,
        on_progress: Callable[[Progress], None] | None,
        should_stop: Callable[[], bool],
        pause_after: float,
    ) -> None:
        """Learn from the rest of the stream, looking, saving and telling on the way."""
        clock, stream, learner, tally = time.perf_counter, self._stream, self._learner, self._tally
        moments, marked = self._looker.moments, self._marked if tally.trace is not None else ()
        next_told = self._start
        if stream.batches_given in moments:  # it was stopped while it looked
            self._look(should_stop)
        if stream.batches_given in marked:
            tally.mark_point(learner, self._looker.segment_names)
        remaining = len(stream) - stream.batches_given
        for _ in range(remaining):
            asked = clock()
            inputs, labels = next(stream)
            given = clock()
            with self._cast():
                report = learner.observe(inputs, labels)
            if self._schedule is not None:
                self._schedule.after_batch(report.loss)
            done = clock()
            tally.count_step(report, labels, seconds=done - given, learn_seconds=done - asked)
            if stream.batches_given in moments:
                self._look(should_stop)
            if stream.batches_given in marked:
                tally.mark_point(learner, self._looker.segment_names)
            if done >= self._next_save and self._save() and done - self._start > pause_after:
                raise Stopped
            if on_progress is not None and done >= next_told:
                on_progress(self._progress())
                next_told = done + _TOLD_EVERY
            self._stop_if(should_stop)
        self.tell_points(on_progress)

    def tell_points(self, on_progress: Callable[[Progress], None] | None) -> None:
        """Tell the points that are left, if the run is tracked."""
        if on_progress is not None and self._tally.trace is not None:
            on_progress(self._progress())

    def record(self, error: str | None = None, status: Status = "failed") -> Record:
        """Return what came out; without an error, of a run that is done."""
        self._tally.catch_up()
        self._measure_times()
        return _record(
            self._request,
            self._tally,
            error=error,
            status="done" if error is None else status,
            segment_names=self._looker.segment_names,
            total=self._looker.totals(),
        )

    def _look(self, should_stop: Callable[[], bool]) -> None:
        with self._cast():
            self._look_at_all(should_stop)

    def _look_at_all(self, should_stop: Callable[[], bool]) -> None:
        """Take a point of the curve and the rows of segments that are over, once each.

        Looking changes nothing but the tally, which gets whole points and rows: a run can be
        stopped in the middle of a long look, and looks again when it is continued.
        """

        def predict(inputs: Tensor) -> Tensor:
            self._stop_if(should_stop)
            logits: Tensor = self._learner.predict(inputs)
            return logits

        given = self._stream.batches_given
        curve = self._tally.curve
        if self._looker.is_due(given) and (not curve or curve[-1].seen < self._learner.seen):
            curve.append(self._looker.point(self._learner, given))
            self._tally.look_into_memory(self._learner)
            self._prune_if_below(curve)
        while len(self._tally.rows) < self._looker.num_over(given):
            self._tally.rows.append(self._looker.row(predict))

    def _prune_if_below(self, curve: list[CurvePoint]) -> None:
        bars = dict(self._request.stop_below)
        least = bars.get(curve[-1].seen)
        if least is None:
            return
        accuracy = recent_accuracy([(point.seen, point.accuracy) for point in curve])
        if accuracy < least:
            told = f"recent any-time accuracy {accuracy:.2%} is below {least:.2%}"
            raise _Pruned(f"pruned after {curve[-1].seen:,} examples: {told}.")

    def _stop_if(self, should_stop: Callable[[], bool]) -> None:
        if should_stop():
            self._save()
            raise Stopped

    def _save(self) -> bool:
        """Save its place if it can be saved, and say whether."""
        if self._checkpoints is None:
            return False
        start, is_saved = time.perf_counter(), False
        self._measure_times()
        # A run that diverges cannot be saved; it fails of itself, with the reason, a little later.
        with suppress(CheckpointError):
            save_run(
                self._checkpoints,
                self._request,
                learner=self._learner,
                stream=self._stream,
                tally=self._tally,
                schedule=self._schedule,
            )
            is_saved = True
        self._last_cost = time.perf_counter() - start
        self._saving_seconds += self._last_cost
        self._next_save = self._when_to_save()
        return is_saved

    def _when_to_save(self) -> float:
        """Return the time at which all savings, the next included, are the share allowed."""
        if self._checkpoints is None or self._share <= 0:
            return float("inf")
        return self._start + (self._saving_seconds + self._last_cost) / self._share

    def _measure_times(self) -> None:
        tally = self._tally
        tally.wall_seconds = self._earlier_wall + time.perf_counter() - self._start
        tally.cpu_seconds = self._earlier_cpu + time.process_time() - self._cpu_start
        tally.peak_bytes = max(self._earlier_peak, peak_memory())

    def _progress(self) -> Progress:
        seconds, seen = self._learnt_before
        learnt_for = self._tally.learn_seconds - seconds
        last = self._tally.curve[-1] if self._tally.curve else None
        started_at, points = None, None
        if self._tally.trace is not None:
            started_at = self._tally.started_at
            points = tuple(self._tally.trace.points[self._points_told :])
            self._points_told += len(points)
        return Progress(
            segment=self._looker.segment_at(self._stream.batches_given) + 1,
            num_segments=len(self._looker.segment_names),
            seen=self._stream.cursor,
            num_examples=self._stream.num_examples,
            accuracy=None if last is None else last.accuracy,
            examples_per_second=(self._stream.cursor - seen) / learnt_for if learnt_for else 0.0,
            started_at=started_at,
            points=points,
        )


def _record(
    request: Request,
    tally: Tally,
    *,
    error: str | None,
    status: Status = "failed",
    segment_names: tuple[str, ...] = (),
    total: tuple[int, ...] = (),
) -> Record:
    cell = request.cell
    return Record(
        spec_hash=cell.spec_hash,
        protocol=cell.protocol,
        benchmark=cell.benchmark,
        method=cell.method,
        seed=request.seed,
        capacity=cell.capacity,
        passes=cell.learner["passes"],
        spec=cell.canonical_json,
        command=request.command,
        status=status,
        error=error,
        segment_names=segment_names,
        correct=tuple(tuple(row) for row in tally.rows),
        total=total,
        curve=tuple(tally.curve),
        memory=tuple(tally.memory),
        prequential_correct=tally.prequential_correct,
        prequential_total=tally.prequential_total,
        num_steps=len(tally.step_micros),
        num_examples=tally.prequential_total,
        step_seconds=tally.step_seconds(),
        learn_seconds=tally.learn_seconds,
        wall_seconds=tally.wall_seconds,
        cpu_seconds=tally.cpu_seconds,
        peak_bytes=tally.peak_bytes,
        num_resumes=tally.num_resumes,
        threads=torch.get_num_threads(),
        versions=versions() | {"code": code()},
        commit=commit(),
        machine=machine() | _mixed(tally.places),
        started_at=tally.started_at,
    )


def _mixed(places: list[tuple[str, int]]) -> dict[str, str]:
    """Name every processor of a run whose parts were made in different places.

    Nobody can make it again to the same bits, so it must not pass for a run of either.
    """
    if len(places) < 2:
        return {}
    told = [f"{cpu} ({threads} thread{'s' * (threads > 1)})" for cpu, threads in places]
    return {"cpu": ", then ".join(told)}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
