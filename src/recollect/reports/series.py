"""What the runs of a cell were doing over time, averaged over seeds, ready to be drawn."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from recollect.experiments.records.record import MemoryPoint, Record
from recollect.experiments.records.scores import accuracy_matrix
from recollect.reports.cells import CellRuns, accuracy_over_time
from recollect.reports.statistics import Summary, summarise

_MOST_GROUPS: Final = 20


@dataclass(frozen=True)
class Curve:
    """A number over the stream, summarised over seeds at each moment.

    Attributes:
        seen: Stream examples at each moment.
        summaries: Mean and interval there.
    """

    seen: tuple[int, ...]
    summaries: tuple[Summary, ...]


@dataclass(frozen=True)
class MemoryOverTime:
    """What memories of several seeds held, averaged at each moment they share.

    Attributes:
        seen: Stream examples at each moment.
        names: Every class that ever held or lost a slot, ascending; of many, groups of neighbours.
        counts: Mean slots of each class (columns) at each moment (rows).
        ages: Mean of the five age quantiles at each moment.
        replays: Mean of the five quantiles of times replayed.
        evicted: Mean slots each class lost since the moment before.
        evicted_age: Mean age of those that left, None where none did.
        evicted_score: Their mean score, None without scores.
    """

    seen: tuple[int, ...]
    names: tuple[str, ...]
    counts: tuple[tuple[float, ...], ...]
    ages: tuple[tuple[float, ...], ...]
    replays: tuple[tuple[float, ...], ...]
    evicted: tuple[tuple[float, ...], ...]
    evicted_age: tuple[float | None, ...]
    evicted_score: tuple[float | None, ...]


def accuracy_curve(cell: CellRuns) -> Curve | None:
    """Return average accuracy over the segments met so far; None if no run has a curve.

    Seeds are compared at the moments that all of them have.
    """
    curves = [accuracy_over_time(record) for record in cell.records]
    seen = _shared([curve.keys() for curve in curves])
    if not seen:
        return None
    return Curve(seen, tuple(summarise([curve[moment] for curve in curves]) for moment in seen))


def segment_boundaries(record: Record) -> list[int]:
    """Return where the stream met a new segment, as far as the curve tells.

    The last moment before a curve's point first covers one more segment.
    """
    boundaries = []
    met, before = 1, 0
    for point in record.curve:
        if len(point.total) > met:
            boundaries.append(before)
            met = len(point.total)
        before = point.seen
    return boundaries


def mean_matrix(cell: CellRuns) -> list[list[float | None]]:
    """Return mean accuracy after each segment (rows) on each segment met by then (columns)."""
    matrices = [accuracy_matrix(record) for record in cell.records]
    size = min(matrix.num_evaluations for matrix in matrices)
    return [
        [
            fmean(matrix.accuracy(trained_on=i, tested_on=j) for matrix in matrices)
            if j <= i
            else None
            for j in range(size)
        ]
        for i in range(size)
    ]


def memory_over_time(cell: CellRuns) -> MemoryOverTime | None:
    """Return what the memories held; None for a method without one.

    More than 20 classes are counted in groups of neighbours, which no eye could tell apart singly.
    """
    points = [{point.seen: point for point in record.memory} for record in cell.records]
    seen = thinned(_shared([by_seen.keys() for by_seen in points]))
    if not seen:
        return None
    moments = [[by_seen[moment] for by_seen in points] for moment in seen]
    classes = sorted(
        {c for moment in moments for point in moment for c in (*point.classes, *_gone(point))}
    )
    size = -(-len(classes) // _MOST_GROUPS)
    groups = [classes[start : start + size] for start in range(0, len(classes), size)]
    group_of = {label: index for index, group in enumerate(groups) for label in group}
    return MemoryOverTime(
        seen=seen,
        names=tuple(f"{g[0]}-{g[-1]}" if len(g) > 1 else str(g[0]) for g in groups),
        counts=tuple(_mean_counts(moment, groups, group_of, _held) for moment in moments),
        ages=tuple(_mean_quantiles([p.age_quantiles for p in moment]) for moment in moments),
        replays=tuple(_mean_quantiles([p.replay_quantiles for p in moment]) for moment in moments),
        evicted=tuple(_mean_counts(moment, groups, group_of, _gone) for moment in moments),
        evicted_age=tuple(_mean_known([p.evicted_mean_age for p in m]) for m in moments),
        evicted_score=tuple(_mean_known([p.evicted_mean_score for p in m]) for m in moments),
    )


def thinned(moments: Sequence[int], *, most: int = 50) -> tuple[int, ...]:
    """Leave out moments evenly until there are at most so many; the first and the last stay.

    Example:
        >>> thinned(range(1000), most=5)
        (0, 250, 500, 749, 999)
    """
    if len(moments) <= most:
        return tuple(moments)
    last = len(moments) - 1
    return tuple(moments[round(last * index / (most - 1))] for index in range(most))


def _shared(moments: Sequence[Iterable[int]]) -> tuple[int, ...]:
    if not moments:
        return ()
    common: set[int] = set(moments[0])
    for other in moments[1:]:
        common &= set(other)
    return tuple(sorted(common))


def _held(point: MemoryPoint) -> dict[int, int]:
    return dict(zip(point.classes, point.counts, strict=True))


def _gone(point: MemoryPoint) -> dict[int, int]:
    return dict(zip(point.evicted_classes, point.evicted_counts, strict=True))


def _mean_counts(
    moment: Sequence[MemoryPoint],
    groups: Sequence[Sequence[int]],
    group_of: Mapping[int, int],
    counted: Callable[[MemoryPoint], dict[int, int]],
) -> tuple[float, ...]:
    totals = [0] * len(groups)
    for point in moment:
        for label, count in counted(point).items():
            totals[group_of[label]] += count
    return tuple(total / len(moment) for total in totals)


def _mean_quantiles(quantiles: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    known = [entry for entry in quantiles if entry]
    return tuple(fmean(column) for column in zip(*known, strict=True))


def _mean_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
