"""Accuracy and forgetting as bars, with intervals and single seeds."""

from collections.abc import Sequence

from recollect.reports.cells import CellRuns, final_accuracy, final_forgetting
from recollect.reports.numbers import percent, points
from recollect.reports.page.comparison import (
    Number,
    count_seeds,
    default_reference,
    difference_sentence,
    differences_to,
    for_reference,
    summary_entry,
)
from recollect.reports.page.parts import (
    MOST_DOTS,
    Bar,
    bars,
    bounds,
    escape,
    few,
    figure,
    owned,
    packed,
    table,
)
from recollect.reports.page.plots import round_ticks


def bar_charts(cells: Sequence[CellRuns]) -> str:
    """Return bars of accuracy and forgetting, and of the differences to the reference."""
    charts = [
        _share_bars("Average accuracy at the end, %", cells, final_accuracy),
        _share_bars("Forgetting, %", cells, final_forgetting),
    ]
    charts += _difference_charts(cells)
    return (
        '<h3>Accuracy and forgetting</h3><p class="note">Bars are means, whiskers 95 % intervals, '
        f"dots single seeds, where there are at most {MOST_DOTS}.</p>"
        f'<div class="charts">{"".join(charts)}</div>'
    )


def _share_bars(title: str, cells: Sequence[CellRuns], number: Number) -> str:
    # No share is above 100 %, and of the two only forgetting can be below 0. An interval of few
    # seeds may say so; it is drawn as far as there are shares.
    least = 0.0 if number is final_accuracy else -100.0
    rows = []
    for cell in cells:
        summary = cell.summary(number)
        rows.append(
            Bar(
                cell.label,
                cell.method,
                100 * summary.mean,
                None if summary.low is None else max(least, 100 * summary.low),
                None if summary.high is None else min(100.0, 100 * summary.high),
                few([100 * value for value in cell.by_seed(number).values()]),
                percent(summary.mean),
                f"{cell.label}: {_told(cell, number)}",
            )
        )
    lowest, highest = bounds(rows)
    low, high = min(0.0, lowest), max(highest, min(100.0, 1.02 * highest), 1.0)
    chart = bars(rows, low=low, high=high, ticks=round_ticks(high), unit="%")
    return figure(title, chart, _seed_table(title, cells, number))


def _told(cell: CellRuns, number: Number) -> str:
    if len(cell.records) > MOST_DOTS:
        summary = cell.summary(number)
        spread = "" if summary.half_width is None else f" ± {percent(summary.half_width)}"
        return f"{percent(summary.mean)}{spread} ({count_seeds(summary.n)})"
    return ", ".join(f"seed {seed} {percent(v)}" for seed, v in cell.by_seed(number).items())


def _seed_table(title: str, cells: Sequence[CellRuns], number: Number) -> str:
    seeds = sorted({seed for cell in cells for seed in cell.seeds})
    rows = []
    for cell in cells:
        found = cell.by_seed(number)
        entries = [percent(found[seed]) if seed in found else "" for seed in seeds]
        summary = summary_entry(cell.summary(number))
        rows.append((owned(cell.method), [escape(cell.label), summary, *entries]))
    heading = ["Method", "Mean", *(f"seed {seed}" for seed in seeds)]
    return table(heading, rows, caption=f"{title}, by seed")


def _difference_charts(cells: Sequence[CellRuns]) -> list[str]:
    """Draw what each method adds to the reference; one chart for each possible reference."""
    if len(cells) < 2:
        return []
    chosen = default_reference(cells)
    charts = []
    for metric, number in (("accuracy", final_accuracy), ("forgetting", final_forgetting)):
        forests = [
            for_reference(index, reference is chosen, _forest(cells, reference, number))
            for index, reference in enumerate(cells)
        ]
        first = forests.pop(cells.index(chosen))
        shown = first + packed("".join(forests), when="chosen")
        charts.append(figure(f"Difference in {metric}, points, paired over seeds", shown))
    return charts


def _forest(cells: Sequence[CellRuns], reference: CellRuns, number: Number) -> str:
    rows = []
    base = reference.by_seed(number)
    differences = differences_to(cells, reference, number)
    for cell, difference in zip(cells, differences, strict=True):
        summary = difference.summary
        if summary is None:
            continue
        found = cell.by_seed(number)
        dots = few([100 * (found[seed] - base[seed]) for seed in found if seed in base])
        rows.append(
            Bar(
                cell.label,
                cell.method,
                100 * summary.mean,
                None if summary.low is None else 100 * summary.low,
                None if summary.high is None else 100 * summary.high,
                dots,
                points(summary.mean),
                f"{cell.label} minus {reference.label}: {difference_sentence(difference)}",
            )
        )
    if not rows:
        return '<p class="note">No other method shares a seed with it.</p>'
    lowest, highest = bounds(rows)
    low, high = min(lowest, 0.0) - 0.5, max(highest, 0.0) + 0.5
    ticks = sorted({0.0, *round_ticks(high, num=2), *(-t for t in round_ticks(-low, num=2))})
    head = f'<p class="note">minus {escape(reference.label)}</p>'
    return head + bars(
        rows, low=low, high=high, ticks=_spread_out(ticks, high - low), unit="points"
    )


def _spread_out(ticks: Sequence[float], width: float) -> list[float]:
    """Drop ticks that would touch their neighbour; zero stays."""
    kept: list[float] = []
    for tick in sorted(ticks, key=abs):
        if all(abs(tick - other) > 0.14 * width for other in kept):
            kept.append(tick)
    return sorted(kept)
