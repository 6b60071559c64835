"""One page with everything the records say: no network, no library, opens anywhere."""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from pathlib import Path

from recollect.errors import RecollectError
from recollect.experiments.record import Record
from recollect.reports.cells import (
    CellRuns,
    anytime_accuracy,
    by_benchmark,
    examples_per_second,
    failed_runs,
    final_accuracy,
    final_forgetting,
    flat_spec,
    group_cells,
)
from recollect.reports.html_memory import memory_section
from recollect.reports.html_parts import (
    Bar,
    bars,
    dashes_of,
    escape,
    figure,
    folded,
    interval_bounds,
    legend,
    owned,
    table,
)
from recollect.reports.names import benchmark_title, method_colours, method_title
from recollect.reports.numbers import mebibytes, percent, points, probability, seconds
from recollect.reports.plots import Axes, Line, line_chart, round_ticks, slug
from recollect.reports.series import accuracy_curve, mean_matrix, segment_boundaries
from recollect.reports.statistics import (
    PairedDifference,
    Summary,
    corrected,
    paired_difference,
    summarise,
)

Number = Callable[[Record], float]
_WIDEST_MATRIX_WITH_NUMBERS = 12
_DARK_SHADE = 81  # see page.css: from here on white is easier to read than black


def write_report(records: Iterable[Record], path: str | os.PathLike[str]) -> Path:
    """Write one self-contained HTML page about `records`.

    Args:
        records: Of any benchmarks, methods and seeds. Failed runs are listed, not averaged.
        path: The file to write; it is replaced whole or not at all.

    Returns:
        The path.

    Raises:
        RecollectError: There is no record, or the folder of `path` does not exist.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise RecollectError(f"`{path.parent}` is not a folder; create it, or write elsewhere.")
    page = report_page(list(records))
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(page, encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def report_page(records: Sequence[Record]) -> str:
    """Return the page as text. The same records give the same page."""
    if not records:
        raise RecollectError("there are 0 records to report; run something first.")
    cells = group_cells(records)
    failed = failed_runs(records)
    groups = by_benchmark(cells)
    sections = "".join(_benchmark_section(name, group) for name, group in groups.items())
    assets = files("recollect.reports")
    style = assets.joinpath("page.css").read_text("utf-8") + _colour_rules(cells)
    script = assets.joinpath("page.js").read_text("utf-8")
    title = "recollect: " + ", ".join(benchmark_title(name) for name in groups)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        # Without an icon of its own a browser would ask the server for one.
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title>'
        f"<style>{style}</style></head>"
        '<body><a class="skip" href="#main">Skip to the results</a>'
        f'{_header(records, cells, failed)}{_toolbar(cells)}<main id="main">'
        f"{_failures(failed)}{sections}{_provenance(cells)}</main>"
        '<div id="tip" role="status" aria-live="polite" hidden></div>'
        f"<script>{script}</script></body></html>\n"
    )


# --- top of the page ------------------------------------------------------------------------------


def _header(records: Sequence[Record], cells: Sequence[CellRuns], failed: Sequence[Record]) -> str:
    num_runs = sum(len(cell.records) for cell in cells)
    known = [record for cell in cells for record in cell.records] or list(records)
    versions = sorted({f"recollect {record.versions.get('recollect', '?')}" for record in known})
    commits = sorted({record.commit for record in known if record.commit})
    facts = [f"{num_runs} runs", f"seeds {_ranges({record.seed for record in known})}"]
    if failed:
        facts.append(f"{len(failed)} failed")
    facts += [*versions, "commit " + ", ".join(commits) if commits else "no commit recorded"]
    facts.append(f"last started {max(record.started_at for record in known) or 'unknown'}")
    findings = "".join(
        f"<li><b>{escape(benchmark_title(name))}.</b> {_finding(group)}</li>"
        for name, group in by_benchmark(cells).items()
    )
    return (
        '<header><p class="brand">recollect</p><h1>What was learnt, and what was kept</h1>'
        f'<p class="facts">{" · ".join(escape(fact) for fact in facts)}</p>'
        f'<ul class="findings">{findings}</ul></header>'
    )


def _finding(cells: Sequence[CellRuns]) -> str:
    """Say in one sentence what the accuracies say, with how sure that is."""
    reference = _default_reference(cells)
    highest = max(cells, key=lambda cell: cell.summary(final_accuracy).mean)
    mean = highest.summary(final_accuracy)
    spread = "" if mean.half_width is None else f" ± {percent(mean.half_width)}"
    begin = (
        f"Highest mean accuracy: {escape(highest.label)}, {percent(mean.mean)}{spread} % "
        f"({_seeds(mean.n)})."
    )
    if highest is reference:
        return begin + _runner_up(cells, reference)
    difference = _differences(cells, reference, final_accuracy)[cells.index(highest)]
    return f"{begin} Against {escape(reference.label)}: {_difference_sentence(difference)}"


def _runner_up(cells: Sequence[CellRuns], reference: CellRuns) -> str:
    others = [cell for cell in cells if cell is not reference]
    if not others:
        return ""
    second = max(others, key=lambda cell: cell.summary(final_accuracy).mean)
    difference = _differences(cells, reference, final_accuracy)[cells.index(second)]
    return f" {escape(second.label)} against it: {_difference_sentence(difference)}"


def _difference_sentence(difference: PairedDifference) -> str:
    summary = difference.summary
    if summary is None:
        return "no common seed, so no comparison."
    if summary.low is None or summary.high is None or difference.adjusted is None:
        return f"{points(summary.mean)} points on one seed; nothing can be said from one."
    verdict = "a difference at the 5 % level" if difference.is_certain else "not certain yet"
    return (
        f"{points(summary.mean)} points (95 % interval {points(summary.low)} to "
        f"{points(summary.high)}, {_seeds(summary.n)} in pairs, p = "
        f"{probability(difference.adjusted)} after Holm): {verdict}."
    )


def _toolbar(cells: Sequence[CellRuns]) -> str:
    benchmarks = "".join(
        f'<button type="button" aria-pressed="true" data-toggle-benchmark="{escape(name)}">'
        f"{escape(benchmark_title(name))}</button>"
        for name in by_benchmark(cells)
    )
    methods = "".join(
        f'<button type="button" aria-pressed="true" data-toggle-method="{escape(method)}" '
        f'class="m-{slug(method)}"><span class="swatch"></span>{escape(method_title(method))}'
        "</button>"
        for method in dict.fromkeys(cell.method for cell in cells)
    )
    return (
        '<nav class="toolbar" aria-label="Filter">'
        f'<div role="group" aria-label="Benchmarks">{benchmarks}</div>'
        f'<div role="group" aria-label="Methods">{methods}</div>'
        '<button type="button" id="show-all">Show all</button></nav>'
    )


def _failures(failed: Sequence[Record]) -> str:
    if not failed:
        return ""
    items = "".join(
        folded(
            f"{record.benchmark} {record.method}, seed {record.seed}",
            f"<pre>{escape(record.error or 'no traceback was kept')}</pre>"
            f"<pre>{escape(record.command)}</pre>",
        )
        for record in failed
    )
    return (
        f'<section class="failed"><h2>{len(failed)} failed</h2><p>Left out of every number below.'
        f"</p>{items}</section>"
    )


# --- one benchmark --------------------------------------------------------------------------------


def _benchmark_section(name: str, cells: Sequence[CellRuns]) -> str:
    title = benchmark_title(name)
    parts = [
        _comparison(name, cells),
        _bar_charts(cells),
        _curves(cells),
        _matrices(cells),
        memory_section(cells),
        _speed(cells),
    ]
    shown = escape(name) if title != name else ""
    return (
        f'<section data-benchmark="{escape(name)}" id="{slug(name)}"><h2>{escape(title)} '
        f"<small>{shown}</small></h2>{_cautions(cells)}{''.join(parts)}</section>"
    )


def _cautions(cells: Sequence[CellRuns]) -> str:
    """Say what would make the numbers of a benchmark mean something else."""
    said = []
    if any(flat_spec(cell.records[0]).get("evaluation.on") == '"validation"' for cell in cells):
        said.append("Some of these numbers were read on validation examples, not on test examples.")
    mixed = [cell.label for cell in cells if len({record.commit for record in cell.records}) > 1]
    if mixed:
        said.append(f"Runs of several commits are averaged in {', '.join(mixed)}.")
    return "".join(f'<p class="caution">{escape(caution)}</p>' for caution in said)


def _default_reference(cells: Sequence[CellRuns]) -> CellRuns:
    return next((cell for cell in cells if cell.method == "er"), cells[0])


def _differences(
    cells: Sequence[CellRuns], reference: CellRuns, number: Number
) -> list[PairedDifference]:
    """Compare every cell with the reference, corrected over the comparisons of the column."""
    base = reference.by_seed(number)
    found = iter(
        corrected(
            [
                paired_difference(cell.by_seed(number), base)
                for cell in cells
                if cell is not reference
            ]
        )
    )
    nothing = PairedDifference(None, None, "none")
    return [nothing if cell is reference else next(found) for cell in cells]


def _comparison(name: str, cells: Sequence[CellRuns]) -> str:
    chosen = _default_reference(cells)
    options = "".join(
        f'<option value="{index}"{" selected" if cell is chosen else ""}>{escape(cell.label)}'
        "</option>"
        for index, cell in enumerate(cells)
    )
    select = (
        f'<p class="against"><label>Differences are against <select data-reference='
        f'"{escape(name)}">{options}</select></label></p>'
        if len(cells) > 1
        else ""
    )
    columns = {
        number: [_differences(cells, reference, number) for reference in cells]
        for number in (final_accuracy, final_forgetting)
    }
    rows = []
    for place, cell in enumerate(cells):
        entries = [f'<a href="#{slug(cell.name)}">{_swatch()}{escape(cell.label)}</a>']
        entries.append(str(len(cell.records)))
        for number, by_reference in columns.items():
            entries.append(_summary_entry(cell.summary(number)))
            entries.append(
                "".join(
                    _for_reference(
                        index,
                        index == cells.index(chosen),
                        "reference" if index == place else _difference_entry(found[place]),
                    )
                    for index, found in enumerate(by_reference)
                )
            )
        entries.append(_optional_entry(cell, anytime_accuracy))
        rows.append((owned(cell.method), entries))
    against = "".join(
        _for_reference(index, cell is chosen, f"<small>minus {escape(cell.label)}</small>")
        for index, cell in enumerate(cells)
    )
    heading = [
        "Method",
        "Seeds",
        "Accuracy, %",
        f"Difference, points {against}",
        "Forgetting, %",
        f"Difference, points {against}",
        "Any-time accuracy, %",
    ]
    caption = f"Comparison of methods on {benchmark_title(name)}"
    legend = (
        "Mean ± half the 95 % Student t interval over seeds, with the standard deviation (sd). "
        "Differences are paired over common seeds, with their 95 % interval and the p-value of an "
        "exact sign-flip test (a t test above 16 seeds), Holm-corrected within the column; "
        "<strong>bold</strong> below 5 %. Forgetting: best earlier accuracy on a segment minus "
        "the last, mean over all segments but the last. Any-time: mean over the curve below."
    )
    shown = table(heading, rows, caption=caption, css="comparison", is_caption_hidden=True)
    return f'<h3>Comparison</h3>{select}{shown}<p class="note">{legend}</p>'


def _for_reference(index: int, is_chosen: bool, content: str) -> str:
    hidden = "" if is_chosen else " hidden"
    return f'<span data-against="{index}"{hidden}>{content}</span>'


def _summary_entry(summary: Summary) -> str:
    if summary.half_width is None or summary.sd is None:
        return f"{percent(summary.mean)} <small>one seed: no interval</small>"
    return (
        f"{percent(summary.mean)} ± {percent(summary.half_width)} "
        f"<small>sd {percent(summary.sd)}</small>"
    )


def _difference_entry(difference: PairedDifference) -> str:
    summary = difference.summary
    if summary is None:
        return "<small>no common seed</small>"
    if summary.low is None or summary.high is None or difference.adjusted is None:
        return f"{points(summary.mean)} <small>one common seed</small>"
    shown = points(summary.mean)
    shown = f"<strong>{shown}</strong>" if difference.is_certain else shown
    return (
        f"{shown} <small>{points(summary.low)} to {points(summary.high)}, "
        f"p {_with_sign(difference.adjusted)}</small>"
    )


def _with_sign(p_value: float) -> str:
    shown = probability(p_value)
    return shown if shown.startswith("<") else f"= {shown}"


def _optional_entry(cell: CellRuns, number: Callable[[Record], float | None]) -> str:
    values = [value for record in cell.records if (value := number(record)) is not None]
    return _summary_entry(summarise(values)) if values else "<small>no curve</small>"


def _swatch() -> str:
    return '<span class="swatch"></span>'


# --- bars -----------------------------------------------------------------------------------------


def _bar_charts(cells: Sequence[CellRuns]) -> str:
    charts = [
        _share_bars("Average accuracy at the end, %", cells, final_accuracy),
        _share_bars("Forgetting, %", cells, final_forgetting),
    ]
    charts += _difference_charts(cells)
    return (
        '<h3>Accuracy and forgetting</h3><p class="note">Bars are means, whiskers 95 % intervals, '
        f'dots single seeds.</p><div class="charts">{"".join(charts)}</div>'
    )


def _share_bars(title: str, cells: Sequence[CellRuns], number: Number) -> str:
    summaries = [cell.summary(number) for cell in cells]
    lowest, highest = interval_bounds(summaries)
    low, high = min(0.0, 100 * lowest), max(100 * highest * 1.02, 1.0)
    rows = [
        Bar(
            cell.label,
            cell.method,
            100 * summary.mean,
            None if summary.low is None else 100 * summary.low,
            None if summary.high is None else 100 * summary.high,
            tuple(100 * number(record) for record in cell.records),
            percent(summary.mean),
            f"{cell.label}: " + _by_seed_text(cell, number),
        )
        for cell, summary in zip(cells, summaries, strict=True)
    ]
    chart = bars(rows, low=low, high=high, ticks=round_ticks(high), unit="%")
    return figure(title, chart, _seed_table(title, cells, number))


def _by_seed_text(cell: CellRuns, number: Number) -> str:
    return ", ".join(f"seed {seed} {percent(v)}" for seed, v in cell.by_seed(number).items())


def _seed_table(title: str, cells: Sequence[CellRuns], number: Number) -> str:
    seeds = sorted({seed for cell in cells for seed in cell.seeds})
    rows = []
    for cell in cells:
        found = cell.by_seed(number)
        entries = [percent(found[seed]) if seed in found else "" for seed in seeds]
        summary = _summary_entry(cell.summary(number))
        rows.append((owned(cell.method), [escape(cell.label), summary, *entries]))
    heading = ["Method", "Mean", *(f"seed {seed}" for seed in seeds)]
    return table(heading, rows, caption=f"{title}, by seed")


def _difference_charts(cells: Sequence[CellRuns]) -> list[str]:
    """Draw what each method adds to the reference; one chart for each possible reference."""
    if len(cells) < 2:
        return []
    chosen = _default_reference(cells)
    charts = []
    for metric, number in (("accuracy", final_accuracy), ("forgetting", final_forgetting)):
        shown = "".join(
            _for_reference(index, reference is chosen, _forest(cells, reference, number))
            for index, reference in enumerate(cells)
        )
        charts.append(figure(f"Difference in {metric}, points, paired over seeds", shown))
    return charts


def _forest(cells: Sequence[CellRuns], reference: CellRuns, number: Number) -> str:
    rows, summaries = [], []
    base = reference.by_seed(number)
    differences = _differences(cells, reference, number)
    for cell, difference in zip(cells, differences, strict=True):
        summary = difference.summary
        if summary is None:
            continue
        summaries.append(summary)
        found = cell.by_seed(number)
        dots = tuple(100 * (found[seed] - base[seed]) for seed in found if seed in base)
        rows.append(
            Bar(
                cell.label,
                cell.method,
                100 * summary.mean,
                None if summary.low is None else 100 * summary.low,
                None if summary.high is None else 100 * summary.high,
                dots,
                points(summary.mean),
                f"{cell.label} minus {reference.label}: {_difference_sentence(difference)}",
            )
        )
    if not rows:
        return '<p class="note">No other method shares a seed with it.</p>'
    lowest, highest = interval_bounds(summaries)
    low, high = min(100 * lowest, 0.0) - 0.5, max(100 * highest, 0.0) + 0.5
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


# --- over time ------------------------------------------------------------------------------------


def _curves(cells: Sequence[CellRuns]) -> str:
    curves = [(cell, curve) for cell in cells if (curve := accuracy_curve(cell)) is not None]
    if not curves:
        return ""
    # Methods can only be drawn over each other at moments that all of them have.
    seen = sorted(set.intersection(*(set(curve.seen) for _, curve in curves)))
    if not seen:
        return ""
    lines, rows = [], []
    dashes = dashes_of(cells)
    for cell, curve in curves:
        at = dict(zip(curve.seen, curve.summaries, strict=True))
        summaries = [at[moment] for moment in seen]
        has_band = all(summary.low is not None for summary in summaries)
        shown = tuple(_curve_text(summary) for summary in summaries)
        lines.append(
            Line(
                cell.label,
                cell.method,
                tuple(summary.mean for summary in summaries),
                tuple(s.low or 0.0 for s in summaries) if has_band else (),
                tuple(s.high or 0.0 for s in summaries) if has_band else (),
                shown,
                dashes[cell.name],
            )
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
    chart = line_chart(lines, axes) + legend(cells)
    title = "Average accuracy over the segments met so far, %, by examples seen"
    return "<h3>Any-time accuracy</h3>" + figure(title, chart, numbers, note=note)


def _curve_text(summary: Summary) -> str:
    spread = "" if summary.half_width is None else f" ± {percent(summary.half_width)}"
    return f"{percent(summary.mean)}{spread}"


def _matrices(cells: Sequence[CellRuns]) -> str:
    maps = "".join(_matrix(cell) for cell in cells)
    note = (
        "Accuracy in percent on each segment (columns) after each segment learnt (rows), mean over "
        "seeds. Down a column one sees a segment being forgotten."
    )
    return (
        f'<h3>Accuracy after each segment</h3><p class="note">{note}</p>'
        f'<div class="matrices">{maps}</div>'
    )


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
        f"<figure {owned(cell.method)}><figcaption>{_swatch()}{caption}</figcaption>"
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


# --- cost -----------------------------------------------------------------------------------------


def _speed(cells: Sequence[CellRuns]) -> str:
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
            f"{_swatch()}{escape(cell.label)}", speed, *steps, learn, wall, cpu, peak
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
        ("Stream examples learnt a second", "1/s", lambda r: examples_per_second(r) or 0.0),
        ("Peak memory of the worker, MiB", "MiB", lambda r: r.peak_bytes / 2**20),
    ):
        summaries = [cell.summary(number) for cell in cells]
        high = max(1.0, 1.02 * interval_bounds(summaries)[1])
        rows = [
            Bar(
                cell.label,
                cell.method,
                summary.mean,
                summary.low,
                summary.high,
                tuple(number(record) for record in cell.records),
                f"{summary.mean:,.0f}",
                f"{cell.label}: {summary.mean:,.0f} {unit}",
            )
            for cell, summary in zip(cells, summaries, strict=True)
        ]
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


# --- where numbers come from ----------------------------------------------------------------------


def _provenance(cells: Sequence[CellRuns]) -> str:
    items = "".join(_origin(cell) for cell in cells)
    return (
        '<section id="origins"><h2>Behind the numbers</h2><p class="note">The spec, the command '
        f"and the circumstances of every run.</p>{items}</section>"
    )


def _origin(cell: CellRuns) -> str:
    first = cell.records[0]
    facts = [
        ("Spec hash", f"<code>{escape(cell.spec_hash)}</code>"),
        ("Protocol", escape(cell.protocol)),
        ("Memory", f"{cell.capacity:,} slots" if cell.capacity else "none"),
        ("Passes", escape(cell.passes)),
        ("Versions", escape(_joined({_pairs(record.versions) for record in cell.records}))),
        ("Commit", escape(_joined({record.commit or "none" for record in cell.records}))),
        ("Machine", escape(_joined({_pairs(record.machine) for record in cell.records}))),
        ("Threads", escape(_joined({str(record.threads) for record in cell.records}))),
    ]
    listed = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts)
    rows = [
        (
            "",
            [
                str(record.seed),
                percent(final_accuracy(record), digits=2),
                percent(final_forgetting(record), digits=2),
                seconds(record.wall_seconds),
                str(record.num_resumes),
                escape(record.started_at),
                _command(record.command),
            ],
        )
        for record in cell.records
    ]
    heading = ["Seed", "Accuracy, %", "Forgetting, %", "Wall", "Resumed", "Started", "Command"]
    runs = table(heading, rows, caption="Runs", css="runs")
    spec = f"<pre>{escape(_pretty(first.spec))}</pre>"
    title = f"{benchmark_title(cell.benchmark)}: {cell.label}"
    return (
        f'<details class="origin" id="{slug(cell.name)}" data-of="{escape(cell.benchmark)}" '
        f'data-method="{escape(cell.method)}"><summary>{escape(title)} '
        f"<small>{_seeds(len(cell.records))}, spec {escape(cell.spec_hash[:8])}</small></summary>"
        f"<dl>{listed}</dl><h4>Runs</h4>{runs}<h4>Spec</h4>{spec}</details>"
    )


def _command(command: str) -> str:
    return (
        f"<code>{escape(command)}</code> "
        f'<button type="button" class="copy" data-copy="{escape(command)}">Copy</button>'
    )


def _pretty(spec: str) -> str:
    try:
        return json.dumps(json.loads(spec), indent=2, sort_keys=True)
    except json.JSONDecodeError:
        return spec


def _pairs(facts: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items()) or "not recorded"


def _joined(values: set[str]) -> str:
    return "; ".join(sorted(values))


def _seeds(num: int) -> str:
    return "1 seed" if num == 1 else f"{num} seeds"


def _ranges(numbers: set[int]) -> str:
    """Write seeds in short.

    Example:
        >>> _ranges({0, 1, 2, 5})
        '0-2, 5'
    """
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{p[0]}-{p[-1]}" if len(p) > 1 else str(p[0]) for p in parts)


def _colour_rules(cells: Sequence[CellRuns]) -> str:
    colours = method_colours(cell.method for cell in cells)
    light = "".join(f".m-{slug(m)}{{--c:{c.light}}}" for m, c in colours.items())
    dark = "".join(f".m-{slug(m)}{{--c:{c.dark}}}" for m, c in colours.items())
    return f"{light}@media screen and (prefers-color-scheme:dark){{{dark}}}"
