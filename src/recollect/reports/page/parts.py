"""Pieces of the page: tables, rows of bars, foldings. Text goes in, escaped HTML comes out."""

import base64
import gzip
import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from recollect.reports.page.plots import Line, slug
from recollect.reports.statistics import Summary

Row = Sequence[str]
MOST_DOTS: Final = 40
# Characters. A report of a few dozen runs stays a plain page.
_WORTH_PACKING: Final = {"seen": 100_000, "opened": 10_000, "chosen": 50_000}


@dataclass(frozen=True)
class Bar:
    """One horizontal bar.

    Attributes:
        label: What it belongs to.
        method: Whose colour it has, and whose switch hides it.
        value: Its length, in the unit of the scale.
        low: Lower end of the interval, None for one seed.
        high: Its upper end.
        dots: The single runs.
        shown: Its number, as text.
        told: What a pointer is told.
    """

    label: str
    method: str
    value: float
    low: float | None
    high: float | None
    dots: tuple[float, ...]
    shown: str
    told: str


def escape(text: object) -> str:
    """Return text that is safe between tags and in attributes."""
    return html.escape(str(text))


def owned(method: str) -> str:
    """Return the attributes that give an element a method's colour and switch."""
    return f'data-method="{escape(method)}" class="m-{slug(method)}"'


def table(
    heading: Row,
    rows: Iterable[tuple[str, Row]],
    *,
    caption: str,
    css: str = "",
    is_caption_hidden: bool = False,
) -> str:
    """Return a table whose first column heads its rows.

    Args:
        heading: HTML of the column headings.
        rows: Attributes of the row (see `owned`) and the HTML of its entries.
        caption: What the table shows.
        css: Further class names.
        is_caption_hidden: Whether only a screen reader is told the caption.
    """
    hidden = ' class="unseen"' if is_caption_hidden else ""
    head = "".join(f'<th scope="col">{entry}</th>' for entry in heading)
    body = "".join(
        f'<tr {attributes}><th scope="row">{entries[0]}</th>'
        + "".join(f"<td>{entry}</td>" for entry in entries[1:])
        + "</tr>"
        for attributes, entries in rows
    )
    # A wide table scrolls inside its own frame, which must then be reachable by keyboard.
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table class="{css}"><caption{hidden}>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def folded(summary: str, content: str, *, css: str = "") -> str:
    """Return content that opens on demand."""
    return f'<details class="{css}"><summary>{escape(summary)}</summary>{content}</details>'


def packed(content: str, *, when: Literal["seen", "opened", "chosen"]) -> str:
    """Return a large part of the page so that it takes little room, and no time until it is wanted.

    It is compressed, and the page's script unpacks it. A small part stays as it is.

    Args:
        content: HTML.
        when: Unpack it when a reader comes near it, opens what it is in, or chooses another method
            to compare with.
    """
    if len(content) < _WORTH_PACKING[when]:
        return content
    # Without the time, the same records give the same page.
    small = base64.b64encode(gzip.compress(content.encode(), mtime=0)).decode()
    return f'<div data-packed="{small}" data-when="{when}"></div>'


def few(values: Sequence[float]) -> tuple[float, ...]:
    """Return values to draw as dots, or none if they could not be told apart."""
    return tuple(values) if len(values) <= MOST_DOTS else ()


def figure(title: str, chart: str, numbers: str = "", *, note: str = "", owner: str = "") -> str:
    """Return a chart with its title, and the table behind it."""
    said = f'<p class="note">{note}</p>' if note else ""
    behind = folded("Numbers", numbers, css="numbers") if numbers else ""
    who = owner or 'class="chart"'
    return f"<figure {who}><figcaption>{escape(title)}</figcaption>{said}{chart}{behind}</figure>"


def bars(rows: Sequence[Bar], *, low: float, high: float, ticks: Sequence[float], unit: str) -> str:
    """Return horizontal bars from 0 with intervals and single runs, on a common scale.

    They are a list with its numbers written out, so nothing is lost without eyes for the bars.

    Raises:
        ValueError: A mark is outside `low` to `high`; it could only be drawn at a wrong value.
    """
    lowest, highest = bounds(rows)
    if not low <= lowest <= highest <= high:
        raise ValueError(
            f"`low` to `high` is {low} to {high}, but `rows` has marks from {lowest} to {highest}; "
            "widen the scale to `bounds(rows)`."
        )
    marks = "".join(
        f'<i style="left:{_place(tick, low, high):.2f}%"><b>{tick:g}</b></i>' for tick in ticks
    )
    items = "".join(_bar(bar, low, high) for bar in rows)
    return (
        f'<div class="bars" data-low="{low:.6g}" data-high="{high:.6g}"><ul>{items}</ul>'
        f'<div class="scale" aria-hidden="true"><span></span><div>{marks}</div>'
        f"<span>{escape(unit)}</span></div></div>"
    )


def _bar(bar: Bar, low: float, high: float) -> str:
    zero, end = _place(0.0, low, high), _place(bar.value, low, high)
    left, width = min(zero, end), abs(end - zero)
    interval = ""
    if bar.low is not None and bar.high is not None:
        start, stop = _place(bar.low, low, high), _place(bar.high, low, high)
        interval = f'<s style="left:{start:.2f}%;width:{stop - start:.2f}%"></s>'
    dots = "".join(f'<u style="left:{_place(dot, low, high):.2f}%"></u>' for dot in bar.dots)
    return (
        f'<li {owned(bar.method)} data-tip="{escape(bar.told)}"><span>{escape(bar.label)}</span>'
        f'<div aria-hidden="true"><em style="left:{left:.2f}%;width:{width:.2f}%"></em>'
        f"{dots}{interval}</div><span>{escape(bar.shown)}</span></li>"
    )


def _place(value: float, low: float, high: float) -> float:
    return 100.0 * (value - low) / (high - low)


def bounds(rows: Iterable[Bar]) -> tuple[float, float]:
    """Return the lowest and highest of all marks: means, ends of intervals, and single runs."""
    marks = [
        mark
        for bar in rows
        for mark in (bar.value, bar.low, bar.high, *bar.dots)
        if mark is not None
    ]
    return min(marks), max(marks)


def line_through(
    summaries: Sequence[Summary], shown: Sequence[str], *, label: str, method: str, dash: str
) -> Line:
    """Return a line of means, with a band of their intervals if all of them have one."""
    has_band = all(summary.low is not None for summary in summaries)
    return Line(
        label,
        method,
        tuple(summary.mean for summary in summaries),
        tuple(summary.low or 0.0 for summary in summaries) if has_band else (),
        tuple(summary.high or 0.0 for summary in summaries) if has_band else (),
        tuple(shown),
        dash,
    )


def legend(lines: Iterable[Line]) -> str:
    """Return which colour and stroke is which, for paper and for those who hide the filter."""
    items = "".join(
        f'<li {owned(line.method)}><svg viewBox="0 0 28 8" aria-hidden="true"><line class="stroke" '
        f'x1="1" x2="27" y1="4" y2="4" stroke-dasharray="{line.dash}"/></svg>'
        f"{escape(line.label)}</li>"
        for line in lines
    )
    return f'<ul class="legend">{items}</ul>'


def swatch() -> str:
    """Return a square in the colour of what it stands in."""
    return '<span class="swatch"></span>'
