"""Charts as plain HTML and SVG: no library, no network, text that never shrinks.

Shapes are drawn in an SVG of 1000 x 1000 units that stretches with the page; tick labels are HTML
placed in percent. So a chart fills 390 or 1280 pixels with the same letters and the same strokes.
"""

import html
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from recollect.reports.colours import ramp

_SIDE: Final = 1000.0


@dataclass(frozen=True)
class Line:
    """One line of a chart with the band around it.

    Attributes:
        label: What it is.
        method: Whose colour it has, and whose switch hides it.
        heights: Its value at each x.
        low: Lower edge of the band; empty without one.
        high: Upper edge.
        shown: What a reader is told at each x.
        dash: A stroke pattern, "" for a full line.
    """

    label: str
    method: str
    heights: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    shown: tuple[str, ...]
    dash: str = ""


@dataclass(frozen=True)
class Axes:
    """What surrounds the shapes.

    Attributes:
        x: Positions of the points along the stream.
        top: Value at the upper edge; the lower edge is 0.
        title: What the chart shows, for those who hear it.
        x_unit: What x counts.
        percent: Whether heights are shares to be read in percent.
        boundaries: Positions to mark with a thin line.
        is_small: Whether it is one of many.
    """

    x: tuple[int, ...]
    top: float
    title: str
    x_unit: str = "examples seen"
    percent: bool = False
    boundaries: tuple[int, ...] = ()
    is_small: bool = False


def round_ticks(top: float, *, num: int = 4) -> list[float]:
    """Return round numbers from 0 to at most `top`.

    Example:
        >>> round_ticks(1.0), round_ticks(523)
        ([0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 200.0, 400.0])
    """
    if top <= 0:
        return [0.0]
    raw = top / num
    magnitude = 10.0 ** math.floor(math.log10(raw))
    step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= raw * 0.999)
    return [index * step for index in range(int(top / step + 1e-9) + 1)]


def line_chart(lines: Sequence[Line], axes: Axes) -> str:
    """Draw lines with bands, and keep what a pointer or an arrow key asks for beside them."""
    bands, strokes = [], []
    for line in lines:
        owner = f'data-method="{html.escape(line.method)}" class="m-{slug(line.method)}"'
        dash = f' stroke-dasharray="{line.dash}"' if line.dash else ""
        low, high = _worth_seeing(line)
        if line.low:
            outline = _points(axes, line.high) + " " + _points(axes, line.low, backwards=True)
            bands.append(f'<g {owner}><polygon class="band" points="{outline}"/></g>')
        strokes.append(
            f'<g {owner} data-low="{low:.6g}" data-high="{high:.6g}">'
            f'<polyline class="stroke" points="{_points(axes, line.heights)}"{dash}/></g>'
        )
    series = [{"label": line.label, "method": line.method, "shown": line.shown} for line in lines]
    # No band may tint a line, so all lines lie on top.
    return _frame("".join(bands + strokes), axes, series)


def _worth_seeing(line: Line) -> tuple[float, float]:
    """Return the heights a closer look must show: the line, and the band as far as it is narrow.

    Two seeds give bands that cover everything; they may leave the picture, the line may not.
    """
    low, high = min(line.heights), max(line.heights)
    room = 0.5 * (high - low)
    return max(min(line.low, default=low), low - room), min(
        max(line.high, default=high), high + room
    )


def stacked_areas(
    labels: Sequence[str], heights: Sequence[Sequence[float]], axes: Axes, shown: Sequence[str]
) -> str:
    """Draw areas on top of each other, the first at the bottom, in the colours of the ramp.

    Args:
        labels: What each area is.
        heights: A row a moment, a column an area.
        axes: What surrounds them.
        shown: What a reader is told at each moment.
    """
    shapes = []
    floor = tuple(0.0 for _ in heights)
    for index, label in enumerate(labels):
        roof = tuple(base + row[index] for base, row in zip(floor, heights, strict=True))
        outline = _points(axes, roof) + " " + _points(axes, floor, backwards=True)
        colour = ramp(index / max(1, len(labels) - 1))
        shapes.append(
            f'<polygon class="area" fill="{colour}" points="{outline}">'
            f"<title>{html.escape(label)}</title></polygon>"
        )
        floor = roof
    return _frame("".join(shapes), axes, [{"label": "", "method": "", "shown": list(shown)}])


def stacked_bars(
    labels: Sequence[str], heights: Sequence[Sequence[float]], axes: Axes, shown: Sequence[str]
) -> str:
    """Draw one bar a moment, its parts on top of each other in the colours of the ramp."""
    shapes = []
    edges = (0, *axes.x)
    for moment, row in enumerate(heights):
        left, right = _across(axes, edges[moment]), _across(axes, edges[moment + 1])
        gap = (right - left) * 0.12
        floor = 0.0
        for index, height in enumerate(row):
            if height:
                y, bottom = _down(axes, floor + height), _down(axes, floor)
                colour = ramp(index / max(1, len(labels) - 1))
                shapes.append(
                    f'<rect class="area" fill="{colour}" x="{left + gap:.1f}" y="{y:.1f}" '
                    f'width="{right - left - 2 * gap:.1f}" height="{bottom - y:.1f}"/>'
                )
            floor += height
    series = [{"label": "", "method": "", "shown": list(shown)}]
    # Whoever points at a bar means that bar, not the edge nearest to the pointer.
    middles = [(left + right) / 2 for left, right in pairwise(edges)]
    return _frame("".join(shapes), axes, series, pointed_at=middles)


def _frame(
    shapes: str,
    axes: Axes,
    series: Sequence[object],
    *,
    pointed_at: Sequence[float] | None = None,
) -> str:
    ticks = round_ticks(axes.top, num=2 if axes.is_small else 4)
    rules = "".join(
        f'<line class="rule" x1="0" x2="1000" y1="{_down(axes, t):.1f}" y2="{_down(axes, t):.1f}"/>'
        for t in ticks
    )
    bounds = "".join(
        f'<line class="bound" y1="0" y2="1000" x1="{_across(axes, b):.1f}" '
        f'x2="{_across(axes, b):.1f}"/>'
        for b in axes.boundaries
    )
    y_labels = "".join(
        f'<span class="y" style="top:{_down(axes, t) / 10:.2f}%">{_tick(t, axes.percent)}</span>'
        for t in ticks
    )
    last = axes.x[-1]
    x_ticks = [0, last] if axes.is_small else [t for t in round_ticks(last) if t < last * 0.93]
    x_ticks = x_ticks if axes.is_small else [*x_ticks, last]
    x_labels = "".join(
        f'<span class="x" style="left:{_across(axes, t) / 10:.2f}%">{t:,.0f}</span>'
        for t in x_ticks
    )
    places = [round(_across(axes, x) / 10, 2) for x in pointed_at or axes.x]
    content = {"x": axes.x, "at": places, "unit": axes.x_unit, "series": series}
    size = " small" if axes.is_small else ""
    # Small charts and counts keep their 0; a line of shares may be looked at more closely.
    zoom = f' data-top="{axes.top:.6g}"' if axes.percent else ""
    title = html.escape(axes.title)
    return (
        f'<div class="plot{size}"{zoom} tabindex="0" role="img" aria-label="{title}" '
        f'data-plot="{html.escape(json.dumps(content, separators=(",", ":")))}">'
        '<svg viewBox="0 0 1000 1000" preserveAspectRatio="none" aria-hidden="true">'
        f'{rules}{bounds}{shapes}<line class="cross" y1="0" y2="1000"/></svg>'
        f'<div class="ticks" aria-hidden="true">{y_labels}{x_labels}</div></div>'
    )


def _points(axes: Axes, heights: Sequence[float], *, backwards: bool = False) -> str:
    pairs = [
        f"{_across(axes, x):.1f},{_down(axes, height):.1f}"
        for x, height in zip(axes.x, heights, strict=True)
    ]
    return " ".join(reversed(pairs) if backwards else pairs)


def _across(axes: Axes, x: float) -> float:
    return _SIDE * x / axes.x[-1] if axes.x[-1] else 0.0


def _down(axes: Axes, height: float) -> float:
    share = height / axes.top if axes.top else 0.0
    return _SIDE * (1 - min(max(share, 0.0), 1.0))


def _tick(value: float, percent: bool) -> str:
    return f"{100 * value:.0f}" if percent else f"{value:,.4g}"


def slug(text: str) -> str:
    """Return text that is safe in a class name."""
    return "".join(c if c.isalnum() else "-" for c in text)
