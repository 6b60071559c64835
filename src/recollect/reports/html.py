"""One page with everything the records say: no network, no library, opens anywhere."""

import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from recollect.atomic_files import write_text
from recollect.errors import RecollectError
from recollect.experiments.records.record import Record
from recollect.reports.cells import (
    CellRuns,
    by_benchmark,
    failed_runs,
    final_accuracy,
    flat_spec,
    group_cells,
    most_comparable,
)
from recollect.reports.colours import method_colours
from recollect.reports.conclusion import lead
from recollect.reports.names import benchmark_title, method_title, passes_title
from recollect.reports.numbers import percent
from recollect.reports.page.bar_charts import bar_charts
from recollect.reports.page.by_size import by_size
from recollect.reports.page.comparison import (
    comparison,
    count_seeds,
    default_reference,
    difference_sentence,
    differences_to,
)
from recollect.reports.page.memory import memory_section
from recollect.reports.page.origins import provenance
from recollect.reports.page.over_time import curves, matrices
from recollect.reports.page.parts import escape, folded
from recollect.reports.page.plots import slug
from recollect.reports.page.speed import speed


def write_report(
    records: Iterable[Record],
    path: str | os.PathLike[str],
    *,
    code: Mapping[str, str] | None = None,
) -> Path:
    """Write one self-contained HTML page about `records`.

    Args:
        records: Of any benchmarks, methods and seeds. Failed runs are listed, not averaged.
        path: The file to write; it is replaced whole or not at all. Or a device or a pipe.
        code: Links to the code that made records, by its digest.

    Returns:
        The path.

    Raises:
        RecollectError: There is no record, or the folder of `path` does not exist.
        OSError: The page cannot be written.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise RecollectError(f"`{path.parent}` is not a folder; create it, or write elsewhere.")
    page = report_page(list(records), code=code)
    write_text(path, page)
    return path


def report_page(records: Sequence[Record], *, code: Mapping[str, str] | None = None) -> str:
    """Return the page as text. The same records give the same page."""
    if not records:
        raise RecollectError("there are 0 records to report; run something first.")
    cells = group_cells(records)
    failed = failed_runs(records)
    groups = by_benchmark(cells)
    sections = "".join(_benchmark_section(name, group) for name, group in groups.items())
    assets = files("recollect.reports.page")
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
        "<noscript><p>Large parts of this page are unpacked by its script.</p></noscript>"
        f'{_header(records, cells, failed)}{_toolbar(cells)}<main id="main">'
        f"{_failures(failed)}{sections}{provenance(cells, code or {})}</main>"
        '<div id="tip" role="status" aria-live="polite" hidden></div>'
        f"<script>{script}</script></body></html>\n"
    )


def _header(records: Sequence[Record], cells: Sequence[CellRuns], failed: Sequence[Record]) -> str:
    num_runs = sum(len(cell.records) for cell in cells)
    known = [record for cell in cells for record in cell.records] or list(records)
    versions = sorted({f"recollect {record.versions.get('recollect', '?')}" for record in known})
    commits = sorted({_short_commit(record.commit) for record in known if record.commit})
    facts = [f"{num_runs} runs", f"seeds {_ranges({record.seed for record in known})}"]
    if failed:
        facts.append(f"{len(failed)} failed")
    facts += [*versions, _commits_in_words(commits)]
    facts.append(f"last started {max(record.started_at for record in known) or 'unknown'}")
    leads = "".join(
        f'<p class="lead">{escape(_lead(name, group))}</p>'
        for name, group in by_benchmark(cells).items()
    )
    listed = "".join(
        f"<li><b>{escape(benchmark_title(name))}.</b> {_finding(group)}</li>"
        for name, group in by_benchmark(cells).items()
    )
    findings = f'<ul class="findings">{listed}</ul>'
    return (
        '<header><p class="brand">recollect</p><h1>What was learnt, and what was kept</h1>'
        f'{leads}<p class="facts">{" · ".join(escape(fact) for fact in facts)}</p>'
        f"{folded('The same with intervals and tests', findings, css='more')}</header>"
    )


def _commits_in_words(commits: Sequence[str]) -> str:
    """Name a few commits and count the others.

    Example:
        >>> _commits_in_words(["a", "b", "c", "d", "e"])
        'commits a, b, c and 2 more'
    """
    if not commits:
        return "no commit recorded"
    some = ", ".join(commits[:3])
    more = f" and {len(commits) - 3} more" if len(commits) > 3 else ""
    return f"commit{'' if len(commits) == 1 else 's'} {some}{more}"


def _lead(name: str, cells: Sequence[CellRuns]) -> str:
    """Say in one sentence what a reader can repeat of a benchmark."""
    comparable = most_comparable(cells)
    reference = default_reference(cells)
    best = max(comparable, key=lambda cell: cell.summary(final_accuracy).mean)
    others = [cell for cell in comparable if cell is not best]
    if best is reference and others:
        reference = max(others, key=lambda cell: cell.summary(final_accuracy).mean)
    difference = differences_to(cells, reference, final_accuracy)[cells.index(best)]
    # What they have in common is said once, before their names.
    methods = [cell.method for cell in comparable]
    titles = {
        cell.name: method_title(cell.method) if methods.count(cell.method) == 1 else cell.label
        for cell in comparable
    }
    return lead(
        f"{benchmark_title(name)}{_shared_by(comparable, cells)}",
        titles[best.name],
        best.summary(final_accuracy).mean,
        titles[reference.name],
        difference,
    )


def _finding(cells: Sequence[CellRuns]) -> str:
    """Say in one sentence what the accuracies say, with how sure that is.

    Only of cells that can be compared fairly; their p-values are those of the table below, which
    corrects for all of its rows.
    """
    comparable = most_comparable(cells)
    reference = default_reference(cells)
    highest = max(comparable, key=lambda cell: cell.summary(final_accuracy).mean)
    mean = highest.summary(final_accuracy)
    spread = "" if mean.half_width is None else f" ± {percent(mean.half_width)}"
    begin = (
        f"Highest mean accuracy{escape(_shared_by(comparable, cells))}: {escape(highest.label)}, "
        f"{percent(mean.mean)}{spread} % ({count_seeds(mean.n)})."
    )
    differences = differences_to(cells, reference, final_accuracy)
    if highest is not reference:
        said = difference_sentence(differences[cells.index(highest)])
        return f"{begin} Against {escape(reference.label)}: {said}"
    others = [cell for cell in comparable if cell is not reference]
    if not others:
        return begin
    second = max(others, key=lambda cell: cell.summary(final_accuracy).mean)
    said = difference_sentence(differences[cells.index(second)])
    return f"{begin} {escape(second.label)} against it: {said}"


def _shared_by(comparable: Sequence[CellRuns], cells: Sequence[CellRuns]) -> str:
    """Say what cells that can be compared have in common and others have not."""
    first = next((cell for cell in comparable if cell.capacity), comparable[0])
    rivals = [cell for cell in cells if cell.capacity]
    parts = []
    if len({cell.capacity for cell in rivals}) > 1:
        parts.append(f"{first.capacity} slots")
    if len({cell.passes for cell in rivals}) > 1:
        parts.append(passes_title(first.passes))
    if len({cell.protocol for cell in cells}) > 1:
        parts.append(f"protocol {first.protocol}")
    return f" with {', '.join(parts)}" if parts else ""


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


def _benchmark_section(name: str, cells: Sequence[CellRuns]) -> str:
    title = benchmark_title(name)
    parts = [
        comparison(name, cells),
        bar_charts(cells),
        by_size(cells),
        curves(cells),
        matrices(cells),
        memory_section(cells),
        speed(cells),
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
    of_commit = [cell.label for cell in cells if len({run.commit for run in cell.records}) > 1]
    if of_commit:
        said.append(f"Runs of several commits are averaged in {', '.join(of_commit)}.")
    processors = {run.machine.get("cpu", "") for cell in cells for run in cell.records}
    if len(processors) > 1:
        named = ", ".join(sorted(cpu or "unknown" for cpu in processors))
        said.append(
            f"Runs of several kinds of processor are compared here ({named}): "
            "at the same seed they differ by rounding."
        )
    return "".join(f'<p class="caution">{escape(caution)}</p>' for caution in said)


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


def _short_commit(commit: str) -> str:
    """Shorten a commit; the mark of local changes stays.

    Example:
        >>> _short_commit("451fb7cef5e94605d8de+"), _short_commit("451fb7c")
        ('451fb7cef5e9+', '451fb7c')
    """
    return commit.rstrip("+")[:12] + ("+" if commit.endswith("+") else "")


def _colour_rules(cells: Sequence[CellRuns]) -> str:
    colours = method_colours(cell.method for cell in cells)
    light = "".join(f".m-{slug(m)}{{--c:{c.light}}}" for m, c in colours.items())
    dark = "".join(f".m-{slug(m)}{{--c:{c.dark}}}" for m, c in colours.items())
    return f"{light}@media screen and (prefers-color-scheme:dark){{{dark}}}"
