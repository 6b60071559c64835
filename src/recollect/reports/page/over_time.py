"""Accuracy over the stream: at any time, and after each segment."""

from collections.abc import Sequence
from typing import Final

from recollect.reports.cells import CellRuns
from recollect.reports.colours import dashes_of
from recollect.reports.numbers import percent
from recollect.reports.page.parts import (
    escape,
    figure,
    legend,
    line_through,
    owned,
    packed,
    swatch,
    table,
)
from recollect.reports.page.plots import Axes, line_chart
from recollect.reports.series import accuracy_curve, mean_matrix, segment_boundaries, thinned
from recollect.reports.statistics import Summary

_WIDEST_MATRIX_WITH_NUMBERS: Final = 12
_DARK_SHADE: Final = 81  # see page.css: from here on white is easier to read than black


def curves(cells: Sequence[CellRuns]) -> str:
    """Return any-time accuracy; nothing if no run has a curve."""
    curves = [(cell, curve) for cell in cells if (curve := accuracy_curve(cell)) is not None]
    if not curves:
        return ""
    # Methods can only be drawn over each other at moments that all of them have.
    seen = thinned(sorted(set.intersection(*(set(curve.seen) for _, curve in curves))))
    if not seen:
        return ""
    lines, rows = [], []
    dashes = dashes_of(cells)
    for cell, curve in curves:
        at = dict(zip(curve.seen, curve.summaries, strict=True))
        summaries = [at[moment] for moment in seen]
        shown = [_curve_text(summary) for summary in summaries]
        dash = dashes[cell.name]
        lines.append(
            line_through(summaries, shown, label=cell.label, method=cell.method, dash=dash)
        )
        rows.append((owned(cell.method), [escape(cell.label), *shown]))
    axes = Axes(
        tuple(seen),
        1.0,
        "Average accuracy over the segments met so far, by examples seen. Arrow keys read it out.",
        percent=True,
        boundaries=tuple(segment_boundaries(cells[0].records[0])),
    )
    numbers = table(
        ["Method", *(f"{moment:,}" for moment in seen)], rows, caption="Accuracy by examples seen"
    )
    note = "Lines are means over seeds, bands 95 % intervals, thin uprights segment boundaries."
    chart = line_chart(lines, axes) + legend(lines)
    title = "Average accuracy over the segments met so far, %, by examples seen"
    return "<h3>Any-time accuracy</h3>" + figure(title, chart, numbers, note=note)


def _curve_text(summary: Summary) -> str:
    spread = "" if summary.half_width is None else f" ± {percent(summary.half_width)}"
    return f"{percent(summary.mean)}{spread}"


def matrices(cells: Sequence[CellRuns]) -> str:
    """Return a heat map for each method."""
    maps = "".join(_matrix(cell) for cell in cells)
    note = (
        "Accuracy in percent on each segment (columns) after each segment learnt (rows), mean over "
        "seeds. Down a column one sees a segment being forgotten."
    )
    shown = packed(f'<div class="matrices">{maps}</div>', when="seen")
    return f'<h3>Accuracy after each segment</h3><p class="note">{note}</p>{shown}'


def _matrix(cell: CellRuns) -> str:
    matrix = mean_matrix(cell)
    names = cell.records[0].segment_names
    has_numbers = len(matrix) <= _WIDEST_MATRIX_WITH_NUMBERS
    head = "".join(
        f'<th scope="col" title="{escape(names[j])}">{j + 1}</th>' for j in range(len(matrix))
    )
    body = "".join(
        f'<tr><th scope="row" title="after {escape(names[i])}">{i + 1}</th>'
        + "".join(_heat(cell.label, names, i, j, value) for j, value in enumerate(row))
        + "</tr>"
        for i, row in enumerate(matrix)
    )
    dense = "" if has_numbers else " dense"
    caption = f"{escape(cell.label)}"
    return (
        f"<figure {owned(cell.method)}><figcaption>{swatch()}{caption}</figcaption>"
        f'<table class="heat{dense}"><caption class="unseen">{caption}: accuracy in percent after '
        f"each segment (rows) on each segment (columns)</caption><thead><tr><td></td>{head}</tr>"
        f"</thead><tbody>{body}</tbody></table></figure>"
    )


def _heat(label: str, names: Sequence[str], i: int, j: int, value: float | None) -> str:
    if value is None:
        return "<td></td>"
    shade = round(100 * value)
    strong = ' class="strong"' if shade > _DARK_SHADE else ""
    told = f"{label}: {percent(value)} % on {names[j]} after {names[i]}"
    return (
        f'<td{strong} style="--v:{shade}%" data-tip="{escape(told)}">'
        f"<span>{percent(value, digits=0)}</span></td>"
    )
