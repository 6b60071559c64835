"""The page of a search: history, importances, the best, every trial. No network, no library."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from recollect.atomic_files import write_text
from recollect.experiments.tuning.choose import Kept, Standing, chosen
from recollect.experiments.tuning.study import Study
from recollect.reports.colours import method_colours
from recollect.reports.names import benchmark_title, method_title
from recollect.reports.numbers import percent
from recollect.reports.page.parts import escape, folded, table
from recollect.reports.page.plots import slug
from recollect.reports.tuning.charts import STYLE, Mark, Point, chart, places
from recollect.reports.tuning.markdown import (
    Standings,
    budget_in_words,
    gain_over_first,
    mark_of,
    method_toml,
    settings_in_words,
    stage_in_words,
    value_in_words,
)


def write_html(study: Study, found: Standings, kept: Kept, path: Path, *, spec: str | None) -> Path:
    """Write the page; return its path. The same records give the same page.

    Args:
        study: What was searched.
        found: How each trial did.
        kept: The records.
        path: The file to write; it is replaced whole or not at all.
        spec: The best settings as a spec; None while the search is not over.
    """
    write_text(path, html_page(study, found, kept, spec=spec))
    return path


def html_page(study: Study, found: Standings, kept: Kept, *, spec: str | None) -> str:
    """Return the page as text."""
    style = files("recollect.reports.page").joinpath("page.css").read_text("utf-8") + STYLE
    colours = method_colours(found)
    style += "".join(f".m-{slug(m)}{{--c:{c.light}}}" for m, c in colours.items())
    dark = "".join(f".m-{slug(m)}{{--c:{c.dark}}}" for m, c in colours.items())
    style += f"@media screen and (prefers-color-scheme:dark){{{dark}}}"
    title = f"Settings for {benchmark_title(study.benchmark)}, chosen on validation data"
    sections = "".join(_section(study, method, rows, kept) for method, rows in found.items())
    written = "" if spec is None else folded("The best settings as a spec", _code(spec))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>recollect: {escape(title)}</title>'
        f"<style>{style}</style></head><body>"
        '<a class="skip" href="#main">Skip to the results</a>'
        f"{_header(study, title, kept)}"
        f'<main id="main">{_overview(study, found)}{written}{sections}</main></body></html>\n'
    )


def _header(study: Study, title: str, kept: Kept) -> str:
    counts = {
        status: sum(record.status == status for record in kept.values())
        for status in ("done", "pruned", "failed")
    }
    minutes = sum(record.cpu_seconds for record in kept.values()) / 60
    facts = [f"{count} runs {status}" for status, count in counts.items() if count]
    facts.append(f"{minutes:.1f} minutes of processor time")
    searched_by = f"<pre>{escape(study.command)}</pre>" if study.command else ""
    return (
        f'<header><p class="brand">recollect</p><h1>{escape(title)}</h1>'
        f'<p class="lead">Every method has the same budget: {escape(budget_in_words(study))} '
        f'Test data was not read.</p><p class="facts">{" · ".join(facts)}</p>{searched_by}</header>'
    )


def _overview(study: Study, found: Standings) -> str:
    rows = []
    for method, standings in found.items():
        best = chosen(standings)
        entries = [escape(method_title(method)), "", "search not over", "", ""]
        if best is not None:
            judged = best.fresh if study.budget.fresh_seeds else best.first
            entries[1:] = [
                str(best.trial.number),
                f'<div class="words">{escape(settings_in_words(best.trial.settings))}</div>',
                escape(stage_in_words(judged)),
                escape(gain_over_first(standings)),
            ]
        rows.append((f'data-method="{escape(method)}"', entries))
    heading = ["method", "trial", "settings", "seeds that chose, %", "gain over the first trial"]
    caption = "The chosen trial of each method: average accuracy, mean ± standard deviation."
    return f"<section><h2>The best</h2>{table(heading, rows, caption=caption)}</section>"


def _section(study: Study, method: str, rows: Sequence[Standing], kept: Kept) -> str:
    best = chosen(rows)
    toml = "" if best is None else _code(method_toml(study, best))
    own = [r for r in kept.values() if r.method == method]
    minutes = sum(record.cpu_seconds for record in own) / 60
    pruned = sum(bool(row.first.num_pruned) for row in rows)
    facts = f"{len(rows)} trials, {pruned} pruned, {minutes:.1f} minutes of processor time"
    settings = "".join(_of_setting(key, rows) for key in study.searched[method])
    return (
        f'<section class="m-{slug(method)}" id="{slug(method)}"><h2>{escape(method_title(method))}'
        f'</h2><p class="facts">{facts}</p>{toml}'
        '<p class="note">Mean accuracy on the first seeds, in per cent. Crosses at the bottom: '
        "pruned or failed. Rings: finalists. Filled: chosen, by fresh seeds.</p>"
        f'<div class="tuning">{_history(rows)}{settings}</div>'
        f"{_shares(study.importances.get(method, {}))}{_trials(study, method, rows)}</section>"
    )


def _history(rows: Sequence[Standing]) -> str:
    across = places([row.trial.number for row in rows], is_log=False)
    points = [_point(row, x) for row, x in zip(rows, across, strict=True)]
    ends = sorted({0, len(rows) - 1})
    ticks = [(across[index], str(rows[index].trial.number)) for index in ends]
    drawn = chart(points, ticks, "Accuracy by trial, and the best so far", is_history=True)
    return f"<figure><figcaption>Trials in their order</figcaption>{drawn}</figure>"


def _of_setting(key: str, rows: Sequence[Standing]) -> str:
    """Draw accuracy against one setting: numbers by size, anything else side by side."""
    having = [row for row in rows if key in row.trial.settings]
    values = [row.trial.settings[key] for row in having]
    if len(set(map(str, values))) < 2:
        return ""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        is_log = min(values) > 0 and max(values) >= 5 * min(values)
        across = places(values, is_log=is_log)
        ticks = [(0.0, f"{min(values):g}"), (1.0, f"{max(values):g}")]
    else:
        names = list(dict.fromkeys(map(value_in_words, values)))
        middle = [(index + 0.5) / len(names) for index in range(len(names))]
        across = [middle[names.index(value_in_words(value))] for value in values]
        ticks = list(zip(middle, names, strict=True))
    points = [_point(row, x) for row, x in zip(having, across, strict=True)]
    drawn = chart(points, ticks, f"Accuracy by {key}", is_history=False)
    return f"<figure><figcaption>{escape(key)}</figcaption>{drawn}</figure>"


def _point(row: Standing, x: float) -> Point:
    mark: Mark = "trial"
    if row.is_finalist:
        mark = "chosen" if row.is_chosen else "finalist"
    is_over = not row.first.num_pruned and not row.first.num_failed
    accuracy = row.first.mean if is_over else None
    told = f"trial {row.trial.number}: {stage_in_words(row.first)}; "
    return Point(
        x, accuracy, mark if is_over else "pruned", told + settings_in_words(row.trial.settings)
    )


def _shares(shares: dict[str, float]) -> str:
    if not shares:
        return ""
    items = "".join(
        f'<li><span>{escape(key)}</span><em style="width:{100 * share:.1f}%"></em>'
        f"<span>{percent(share, digits=0)} %</span></li>"
        for key, share in shares.items()
    )
    note = (
        "Share of each setting in what tells the best quarter of the complete trials from the "
        "others (PED-ANOVA). Of a few trials it is a hint."
    )
    return f'<h3>Importances</h3><p class="note">{note}</p><ul class="shares">{items}</ul>'


def _trials(study: Study, method: str, rows: Sequence[Standing]) -> str:
    keys = study.searched[method]
    body = [
        (
            "",
            [
                str(row.trial.number),
                *(escape(value_in_words(row.trial.settings.get(k, "default"))) for k in keys),
                escape(stage_in_words(row.first)),
                escape(stage_in_words(row.fresh) if row.fresh.accuracies else ""),
                escape(mark_of(row).replace("**", "")),
            ],
        )
        for row in rows
    ]
    heading = ["trial", *map(escape, keys), "first seeds, %", "fresh seeds, %", ""]
    caption = f"Every trial of {method_title(method)}"
    return folded("Every trial", table(heading, body, caption=caption, css="runs"))


def _code(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"
