"""The page of a search as Markdown and a picture: every trial, and the chosen ones."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recollect.atomic_files import write_text
from recollect.experiments.tuning.best import as_tables, toml_text
from recollect.experiments.tuning.choose import Kept, Stage, Standing, chosen
from recollect.experiments.tuning.study import Study
from recollect.reports.names import benchmark_title, method_title
from recollect.reports.numbers import percent
from recollect.reports.statistics import summarise

Standings = Mapping[str, Sequence[Standing]]


def markdown_page(study: Study, found: Standings, kept: Kept) -> str:
    """Return the page as Markdown."""
    name = study.name
    minutes = sum(record.cpu_seconds for record in kept.values()) / 60
    failed = sum(record.status == "failed" for record in kept.values())
    pruned = sum(record.status == "pruned" for record in kept.values())
    stopped = f"{failed} of them failed (diverged)" + (f", {pruned} pruned" if pruned else "")
    searched_by = [f"Searched by `{study.command}`."] if study.command else []
    lines = [
        f"# Settings for {benchmark_title(study.benchmark)}, chosen on validation data",
        "",
        *searched_by,
        f"Written from `{name}.parquet`, the runs, and `{name}.json`, the trials. Test data was",
        "not read.",
        "",
        f"Every method has the same budget: {budget_in_words(study)} "
        "Tables use other seeds (from 0).",
        "Numbers are final average accuracy on validation data in per cent, mean ± standard",
        f"deviation over seeds. {len(kept)} runs, {stopped}, "
        f"{minutes:.0f} minutes of processor time.",
        "",
        f"![Validation accuracy of every trial]({name}.png)",
        "",
        "*Every trial on the first seeds (dots), the finalists on fresh seeds (rings), the chosen "
        "one (filled). A trial that was a finalist before better ones were added keeps its runs on "
        "fresh seeds in the tables below, but has no say.*",
        "",
        "| method | trial | settings | seeds that chose | gain over the first known setting |",
        "|---|---|---|---|---|",
    ]
    lines += [_chosen_row(study, method_title(method), rows) for method, rows in found.items()]
    for method, rows in found.items():
        lines += ["", f"## {method_title(method)}", "", *_trial_table(study, method, rows)]
        best = chosen(rows)
        if best is not None:
            lines += ["", "```toml", method_toml(study, best).rstrip(), "```"]
    return "\n".join([*lines, ""])


def method_toml(study: Study, standing: Standing) -> str:
    """Return what the search says of a method as its table of a spec."""
    trial = standing.trial
    base = {"base": study.bases[trial.method]} if trial.method in study.bases else {}
    return toml_text(as_tables(trial.method, {**base, **trial.settings}))


def budget_in_words(study: Study) -> str:
    """Say what every method gets, as one sentence."""
    budget = study.budget
    first = f"{budget.trials} trials on {budget.seeds} seed(s) (from {budget.first_seeds[0]})"
    if budget.added:
        first += (
            f" and {budget.added} more added by hand after a look at those (near the best, or the "
            "learning rate that ER had chosen with usual settings of PGD and CRS)"
        )
    if not budget.fresh_seeds:
        return f"{first}, of which the best is chosen."
    return (
        f"{first}, then the best {budget.finalists} on {budget.fresh_seeds} fresh seeds (from "
        f"{budget.second_seeds[0]}), which alone choose."
    )


def stage_in_words(result: Stage) -> str:
    """Return mean, spread and number of runs, and what is missing of them."""
    parts = []
    if result.accuracies:
        summary = summarise(list(result.accuracies.values()))
        spread = "" if summary.sd is None else f" ± {percent(summary.sd)}"
        parts.append(f"{percent(summary.mean)}{spread} (n={summary.n})")
    if result.num_failed:
        parts.append(f"{result.num_failed} failed")
    if result.num_pruned:
        parts.append("pruned")
    elif result.num_missing:
        parts.append(f"{result.num_missing} not run")
    return ", ".join(parts)


def settings_in_words(settings: Mapping[str, Any]) -> str:
    """Return settings on one line."""
    return ", ".join(f"{key} {value_in_words(v)}" for key, v in settings.items())


def value_in_words(value: Any) -> str:
    """Return one setting as tables write it."""
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


def gain_over_first(rows: Sequence[Standing]) -> str:
    """Return how much better the chosen trial is than the first, on the seeds that both ran on."""
    best, first = chosen(rows), rows[0]
    if best is None:
        return ""
    if first is best:
        return "is it"
    common = best.first.accuracies.keys() & first.first.accuracies.keys()
    if not common:
        return ""
    gains = [best.first.accuracies[s] - first.first.accuracies[s] for s in common]
    return f"{100 * sum(gains) / len(gains):+.1f} on the first seeds"


def mark_of(row: Standing) -> str:
    """Say what became of a trial, and where it is from if that is worth a word."""
    mark = "**chosen**" if row.is_chosen else "finalist" if row.is_finalist else ""
    if row.trial.origin in ("known", "added"):
        mark = f"{mark}, {row.trial.origin}" if mark else row.trial.origin
    return mark


def _chosen_row(study: Study, title: str, rows: Sequence[Standing]) -> str:
    best = chosen(rows)
    if best is None:
        return f"| {title} | search not over | | | |"
    judged = best.fresh if study.budget.fresh_seeds else best.first
    return (
        f"| {title} | {best.trial.number} | {settings_in_words(best.trial.settings)} "
        f"| {stage_in_words(judged)} | {gain_over_first(rows)} |"
    )


def _trial_table(study: Study, method: str, rows: Sequence[Standing]) -> list[str]:
    keys = [key for key in study.searched[method] if any(key in r.trial.settings for r in rows)]
    head = ["trial", *keys, "first seeds", "fresh seeds", ""]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        values = [value_in_words(row.trial.settings.get(key, "default")) for key in keys]
        fresh = stage_in_words(row.fresh) if row.is_finalist or row.fresh.accuracies else ""
        entries = [str(row.trial.number), *values, stage_in_words(row.first), fresh, mark_of(row)]
        lines.append("| " + " | ".join(entries) + " |")
    return lines


def write_markdown(study: Study, found: Standings, kept: Kept, stem: Path) -> Path:
    """Write `STEM.md` and `STEM.png`; return the first."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    _draw(study, found, stem.with_name(f"{stem.name}.png"))
    path = stem.with_name(f"{stem.name}.md")
    write_text(path, markdown_page(study, found, kept))
    return path


def _draw(study: Study, found: Standings, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 0.42 * len(found) + 1.2), layout="constrained")
    for place, rows in enumerate(found.values()):
        for row in rows:
            first, fresh = row.first.mean, row.fresh.mean
            if first is not None:
                axes.plot(100 * first, place, ".", color="#8a8f98", markersize=5)
            if row.is_chosen and fresh is None:
                fresh = first
            if row.is_finalist and fresh is not None:
                fill = "#1f6fb2" if row.is_chosen else "none"
                axes.plot(100 * fresh, place, "o", mec="#1f6fb2", mfc=fill, markersize=7)
    axes.set_yticks(range(len(found)), [method_title(method) for method in found])
    axes.invert_yaxis()
    axes.grid(axis="x", color="#e5e7eb")
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_xlabel("average accuracy on validation data, %")
    axes.set_title(f"Trials on {benchmark_title(study.benchmark)}", loc="left")
    # The same records give the same file: no date, no version.
    figure.savefig(path, dpi=120, metadata={"Software": None})
    plt.close(figure)
