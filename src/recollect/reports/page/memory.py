"""The part of the page about memories: what they held, how long, and who had to leave."""

from collections.abc import Sequence

from recollect.reports.cells import CellRuns
from recollect.reports.colours import dashes_of, ramp
from recollect.reports.page.parts import escape, figure, legend, owned, packed, table
from recollect.reports.page.plots import Axes, Line, line_chart, stacked_areas, stacked_bars
from recollect.reports.series import MemoryOverTime, memory_over_time

_MOST_BANDS = 4  # more bands on top of each other are mud


def memory_section(cells: Sequence[CellRuns]) -> str:
    """Return composition, ages, replays and evictions of the cells that have a memory."""
    held = [(cell, memory) for cell in cells if (memory := memory_over_time(cell)) is not None]
    if not held:
        return ""
    compositions = "".join(_composition(cell, memory) for cell, memory in held)
    evictions = "".join(_evictions(cell, memory, held) for cell, memory in held)
    names = max((memory.names for _, memory in held), key=len)
    lines = _quantile_chart(
        "Age of the stored examples, in updates", held, "ages"
    ) + _quantile_chart("Times a stored example was replayed", held, "replays")
    composed = packed(f'<div class="small-charts">{compositions}</div>', when="seen")
    left = packed(f'<div class="small-charts evictions">{evictions}</div>', when="seen")
    return (
        '<h3>What the memory holds</h3><p class="note">Slots by class over the stream, mean over '
        f"seeds; the first class at the bottom.</p>{_class_legend(names)}"
        f'{composed}<div class="charts">{lines}</div>'
        '<h3>Who had to leave</h3><p class="note">Slots each class lost between two looks, mean '
        "over seeds. Point at a bar for the mean age of those that left beside the median age "
        "of those that stayed, and for their mean replacement score where the policy scores: why "
        f"they left.</p>{left}"
    )


def _class_legend(names: Sequence[str]) -> str:
    steps = max(1, len(names) - 1)
    squares = " ".join(
        f'<span><i style="background:{ramp(index / steps)}"></i>{name}</span>'
        for index, name in enumerate(names)
    )
    return f'<p class="classes">Class {squares}</p>'


def _composition(cell: CellRuns, memory: MemoryOverTime) -> str:
    top = max(cell.capacity, max(sum(row) for row in memory.counts))
    shown = [_told(memory.names, row, "slots") for row in memory.counts]
    axes = Axes(memory.seen, top, f"{cell.label}: slots by class over the stream", is_small=True)
    chart = stacked_areas(_class_names(memory), memory.counts, axes, shown)
    return figure(
        cell.label,
        chart,
        _class_table(f"{cell.label}: slots by class", memory, memory.counts),
        owner=owned(cell.method),
    )


def _evictions(
    cell: CellRuns, memory: MemoryOverTime, held: Sequence[tuple[CellRuns, MemoryOverTime]]
) -> str:
    top = max(1.0, *(sum(row) for _, other in held for row in other.evicted))
    shown = [
        _told(memory.names, row, "left") + _why(memory, moment)
        for moment, row in enumerate(memory.evicted)
    ]
    axes = Axes(memory.seen, top, f"{cell.label}: slots lost by class", is_small=True)
    chart = stacked_bars(_class_names(memory), memory.evicted, axes, shown)
    numbers = _class_table(f"{cell.label}: slots lost by class", memory, memory.evicted, why=True)
    return figure(cell.label, chart, numbers, owner=owned(cell.method))


def _why(memory: MemoryOverTime, moment: int) -> str:
    age, score = memory.evicted_age[moment], memory.evicted_score[moment]
    if age is None:
        return ""
    median = memory.ages[moment][2] if memory.ages[moment] else None
    text = f"; mean age {age:,.0f} updates"
    text += "" if median is None else f" (median of those that stayed {median:,.0f})"
    return text if score is None else f"{text}; mean score {score:.3g}"


def _told(names: Sequence[str], row: Sequence[float], verb: str) -> str:
    total = f"{sum(row):,.0f} {verb}"
    each = ", ".join(
        f"class {name} {count:.3g}" for name, count in zip(names, row, strict=True) if count
    )
    return f"{total}: {each}" if each else total


def _class_names(memory: MemoryOverTime) -> list[str]:
    return [f"class {name}" for name in memory.names]


def _class_table(
    caption: str, memory: MemoryOverTime, rows: Sequence[Sequence[float]], *, why: bool = False
) -> str:
    heading = ["Seen", *_class_names(memory)]
    heading += ["mean age", "mean score"] if why else []
    body = []
    for moment, row in enumerate(rows):
        entries = [f"{memory.seen[moment]:,}", *(f"{count:.1f}" for count in row)]
        if why:
            age, score = memory.evicted_age[moment], memory.evicted_score[moment]
            entries.append("" if age is None else f"{age:,.0f}")
            entries.append("" if score is None else f"{score:.3g}")
        body.append(("", entries))
    return table(heading, body, caption=caption)


def _quantile_chart(
    title: str, held: Sequence[tuple[CellRuns, MemoryOverTime]], column: str
) -> str:
    cells = [cell for cell, _ in held]
    seen = sorted(set.intersection(*(set(memory.seen) for _, memory in held)))
    if not seen:
        return ""
    dashes = dashes_of(cells)
    lines, rows = [], []
    has_bands = len(held) <= _MOST_BANDS
    for cell, memory in held:
        found = memory.ages if column == "ages" else memory.replays
        at = dict(zip(memory.seen, found, strict=True))
        quantiles = [at[moment] for moment in seen]
        shown = tuple(f"{q[2]:,.3g} ({q[1]:,.3g} to {q[3]:,.3g})" for q in quantiles)
        lines.append(
            Line(
                cell.label,
                cell.method,
                tuple(q[2] for q in quantiles),
                tuple(q[1] for q in quantiles) if has_bands else (),
                tuple(q[3] for q in quantiles) if has_bands else (),
                shown,
                dashes[cell.name],
            )
        )
        rows.append((owned(cell.method), [escape(cell.label), *shown]))
    top = 1.05 * max(1e-9, *(h for line in lines for h in (*line.heights, *line.high)))
    axes = Axes(tuple(seen), top, f"{title}, by examples seen. Arrow keys read it out.")
    numbers = table(["Method", *(f"{moment:,}" for moment in seen)], rows, caption=title)
    half = "bands the middle half" if has_bands else "the middle half is told at the pointer"
    note = f"Lines are medians, {half}, each a mean over seeds. Equal storage gives equal lines."
    return figure(title, line_chart(lines, axes) + legend(lines), numbers, note=note)
