"""What learning cost: time and memory."""

from collections.abc import Sequence

from recollect.experiments.records.record import Record
from recollect.reports.cells import CellRuns, examples_per_second
from recollect.reports.numbers import mebibytes, seconds
from recollect.reports.page.parts import (
    Bar,
    bars,
    bounds,
    escape,
    few,
    figure,
    owned,
    swatch,
    table,
)
from recollect.reports.page.plots import round_ticks
from recollect.reports.statistics import summarise


def speed(cells: Sequence[CellRuns]) -> str:
    """Return how fast the methods were and what memory they took."""
    rows = []
    for cell in cells:
        speeds = [v for record in cell.records if (v := examples_per_second(record)) is not None]
        speed = f"{summarise(speeds).mean:,.0f}" if speeds else ""
        steps = [
            seconds(summarise([record.step_seconds[q] for record in cell.records]).mean)
            for q in range(3)
        ]
        learn, wall, cpu = (
            seconds(cell.summary(number).mean)
            for number in (_learn_seconds, _wall_seconds, _cpu_seconds)
        )
        peak = mebibytes(cell.summary(_peak_bytes).mean)
        entries = [
            f"{swatch()}{escape(cell.label)}", speed, *steps, learn, wall, cpu, peak
        ]  # fmt: skip
        rows.append((owned(cell.method), entries))
    heading = [
        "Method",
        "Examples/s",
        "Step, median",
        "90 %",
        "99 %",
        "Learning",
        "Wall",
        "CPU",
        "Peak memory, MiB",
    ]
    caption = "Time and memory of one run, mean over seeds"
    fastest = _speed_chart(cells)
    return (
        f'<h3>Speed and memory</h3><div class="charts">{fastest}</div>'
        f"{table(heading, rows, caption=caption)}"
        '<p class="note">Examples/s and steps count learning only; wall and CPU time count '
        "evaluation as well. Peak memory is the resident set of the whole worker process, torch "
        "included. Times depend on the machine and on what else it did.</p>"
    )


def _speed_chart(cells: Sequence[CellRuns]) -> str:
    charts = []
    for title, unit, number in (
        ("Stream examples learnt per second", "1/s", lambda r: examples_per_second(r) or 0.0),
        ("Peak memory of the worker, MiB", "MiB", lambda r: r.peak_bytes / 2**20),
    ):
        summaries = [cell.summary(number) for cell in cells]
        rows = [
            Bar(
                cell.label,
                cell.method,
                summary.mean,
                # Nothing takes less than nothing, though an interval of few seeds may say so.
                None if summary.low is None else max(0.0, summary.low),
                summary.high,
                few([number(record) for record in cell.records]),
                f"{summary.mean:,.0f}",
                f"{cell.label}: {summary.mean:,.0f} {unit}",
            )
            for cell, summary in zip(cells, summaries, strict=True)
        ]
        high = max(1.0, 1.02 * bounds(rows)[1])
        ticks = round_ticks(high, num=3)
        charts.append(figure(title, bars(rows, low=0.0, high=high, ticks=ticks, unit=unit)))
    return "".join(charts)


def _learn_seconds(record: Record) -> float:
    return record.learn_seconds


def _wall_seconds(record: Record) -> float:
    return record.wall_seconds


def _cpu_seconds(record: Record) -> float:
    return record.cpu_seconds


def _peak_bytes(record: Record) -> float:
    return float(record.peak_bytes)
