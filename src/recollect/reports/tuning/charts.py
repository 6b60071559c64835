"""Charts of a search as SVG: the history of its trials, and each setting against accuracy."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from recollect.reports.page.parts import escape

Mark = Literal["trial", "pruned", "finalist", "chosen"]

_WIDTH: Final = 340
_HEIGHT: Final = 200
_LEFT: Final = 36  # room for numbers
_BOTTOM: Final = 26
_TOP: Final = 8
STYLE: Final = """
.tuning { display: grid; gap: 1.2rem 2rem;
  grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); }
.tuning svg { width: 100%; height: auto; overflow: visible; }
.tuning text { font-size: 10px; fill: var(--soft); }
.tuning line { stroke: var(--line); }
.tuning .best { fill: none; stroke: var(--c); stroke-width: 1.5; }
.tuning circle { fill: var(--strong-line); }
.tuning .finalist { fill: var(--page); stroke: var(--c); stroke-width: 2; }
.tuning .chosen { fill: var(--c); }
.tuning .pruned { stroke: var(--soft); stroke-width: 1.5; }
.shares { list-style: none; padding: 0; max-width: 34rem; }
.shares li { display: grid; grid-template-columns: 9rem 1fr 4rem; gap: .8rem; align-items: center; }
.shares em { display: block; height: .7rem; background: var(--c); border-radius: 2px; }
.words { text-align: left; white-space: normal; min-width: 14rem; }
"""


@dataclass(frozen=True)
class Point:
    """One trial.

    Attributes:
        x: Where it is, from 0 to 1.
        accuracy: Its mean; None of one that was pruned or failed, which is drawn at the bottom.
        mark: What became of it.
        told: What a pointer is told.
    """

    x: float
    accuracy: float | None
    mark: Mark
    told: str


def chart(
    points: Sequence[Point], ticks: Sequence[tuple[float, str]], title: str, *, is_history: bool
) -> str:
    """Draw trials; of a history also the best so far.

    Args:
        points: The trials, in the order of their numbers.
        ticks: Places and texts below.
        title: For those who hear it.
        is_history: Whether the places are in the order of time.
    """
    known = [point.accuracy for point in points if point.accuracy is not None] or [0.0]
    low, high = min(known), max(known)
    room = max(0.01, 0.1 * (high - low))
    low, high = max(0.0, low - room), min(1.0, high + room)
    shapes = [_grid(low, high), *(_tick(place, text) for place, text in ticks)]
    if is_history:
        shapes.append(_best_so_far(points, low, high))
    # What became a finalist lies on top.
    order = {"pruned": 0, "trial": 1, "finalist": 2, "chosen": 3}
    shapes += [_mark(p, low, high) for p in sorted(points, key=lambda p: order[p.mark])]
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{''.join(shapes)}</svg>"
    )


def places(values: Sequence[float], *, is_log: bool) -> list[float]:
    """Return where numbers are between the smallest and the largest, from 0 to 1."""
    scaled = [math.log(value) if is_log else value for value in values]
    low, high = min(scaled), max(scaled)
    return [0.5 if high == low else (value - low) / (high - low) for value in scaled]


def _across(x: float) -> float:
    return _LEFT + 8 + x * (_WIDTH - _LEFT - 16)


def _down(accuracy: float, low: float, high: float) -> float:
    return _TOP + (1 - (accuracy - low) / (high - low)) * (_HEIGHT - _TOP - _BOTTOM - 12)


def _grid(low: float, high: float) -> str:
    lines = []
    for share in (0.0, 0.5, 1.0):
        value = low + share * (high - low)
        y = _down(value, low, high)
        lines.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{_LEFT - 4}" y="{y + 3:.1f}" text-anchor="end">{100 * value:.1f}</text>'
        )
    return "".join(lines)


def _tick(place: float, text: str) -> str:
    x = _across(place)
    return f'<text x="{x:.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(text)}</text>'


def _best_so_far(points: Sequence[Point], low: float, high: float) -> str:
    best, steps = None, []
    for point in points:
        if point.accuracy is not None and (best is None or point.accuracy > best):
            if best is not None:
                steps.append(f"{_across(point.x):.1f},{_down(best, low, high):.1f}")
            best = point.accuracy
        if best is not None:
            steps.append(f"{_across(point.x):.1f},{_down(best, low, high):.1f}")
    return f'<polyline class="best" points="{" ".join(steps)}"/>'


def _mark(point: Point, low: float, high: float) -> str:
    x, told = _across(point.x), f"<title>{escape(point.told)}</title>"
    if point.accuracy is None:
        y = _HEIGHT - _BOTTOM - 4
        path = f"M{x - 3:.1f} {y - 3}l6 6m0 -6l-6 6"
        return f'<path class="pruned" d="{path}">{told}</path>'
    y_place = _down(point.accuracy, low, high)
    radius = 3 if point.mark == "trial" else 4.5
    return (
        f'<circle class="{point.mark}" cx="{x:.1f}" cy="{y_place:.1f}" r="{radius}">{told}</circle>'
    )
