"""The page of a study: every trial, the chosen ones, and a picture."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recollect.reports.names import benchmark_title, method_title
from recollect.reports.numbers import percent
from studies.tuning.choose import Kept, Stage, Standing, chosen
from studies.tuning.settings import method_table
from studies.tuning.space import Study


def write_page(
    study: Study, found: Mapping[str, Sequence[Standing]], kept: Kept, stem: Path
) -> Path:
    """Write `STEM.md` and `STEM.png`; return the first."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    _draw(study, found, stem.with_suffix(".png"))
    path = stem.with_suffix(".md")
    path.write_text(page(study, found, kept), encoding="utf-8")
    return path


def page(study: Study, found: Mapping[str, Sequence[Standing]], kept: Kept) -> str:
    """Return the page as Markdown."""
    name = study.name
    minutes = sum(record.cpu_seconds for record in kept.values()) / 60
    failed = sum(record.status != "done" for record in kept.values())
    lines = [
        f"# Settings for {benchmark_title(study.benchmark)}, chosen on validation data",
        "",
        f"Written by `python -m studies.tune {name}` from `{name}.parquet`; the search space is",
        f"`studies/{name}.toml`. Test data was not read.",
        "",
        f"Every method has the same budget: {_budget(study)} Tables use other seeds (from 0).",
        "Numbers are final average accuracy on validation data in per cent, mean ± standard",
        f"deviation over seeds. {len(kept)} runs, {failed} of them failed (diverged), "
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
            lines += ["", "```toml", method_table(study, best), "```"]
    return "\n".join([*lines, ""])


def _budget(study: Study) -> str:
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


def _chosen_row(study: Study, title: str, rows: Sequence[Standing]) -> str:
    best = chosen(rows)
    if best is None:
        return f"| {title} | study not over | | | |"
    first = rows[0]
    gain = ""
    common = best.first.accuracies.keys() & first.first.accuracies.keys()
    if first is best:
        gain = "is it"
    elif common:
        gains = [best.first.accuracies[s] - first.first.accuracies[s] for s in common]
        gain = f"{100 * sum(gains) / len(gains):+.1f} on the first seeds"
    return (
        f"| {title} | {best.trial.number} | {_settings(best.trial.settings)} "
        f"| {_stage(best.fresh if study.budget.fresh_seeds else best.first)} | {gain} |"
    )


def _trial_table(study: Study, method: str, rows: Sequence[Standing]) -> list[str]:
    keys = [key for key in study.searched[method] if any(key in r.trial.settings for r in rows)]
    head = ["trial", *keys, "first seeds", "fresh seeds", ""]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        mark = "**chosen**" if row.is_chosen else "finalist" if row.is_finalist else ""
        if row.trial.origin != "drawn":
            mark = f"{mark}, {row.trial.origin}" if mark else row.trial.origin
        values = [_value(row.trial.settings.get(key, "default")) for key in keys]
        fresh = _stage(row.fresh) if row.is_finalist or row.fresh.accuracies else ""
        entries = [str(row.trial.number), *values, _stage(row.first), fresh, mark]
        lines.append("| " + " | ".join(entries) + " |")
    return lines


def _stage(result: Stage) -> str:
    summary = result.summary
    parts = []
    if summary is not None:
        spread = "" if summary.sd is None else f" ± {percent(summary.sd)}"
        parts.append(f"{percent(summary.mean)}{spread} (n={summary.n})")
    if result.num_failed:
        parts.append(f"{result.num_failed} failed")
    if result.num_missing:
        parts.append(f"{result.num_missing} not run")
    return ", ".join(parts)


def _settings(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {_value(value)}" for key, value in settings.items() if key != "base")


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


def _draw(study: Study, found: Mapping[str, Sequence[Standing]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 0.42 * len(found) + 1.2), layout="constrained")
    for place, rows in enumerate(found.values()):
        for row in rows:
            first, fresh = row.first.summary, row.fresh.summary
            if first is not None:
                axes.plot(100 * first.mean, place, ".", color="#8a8f98", markersize=5)
            if row.is_chosen and fresh is None:
                fresh = first
            if row.is_finalist and fresh is not None:
                fill = "#1f6fb2" if row.is_chosen else "none"
                axes.plot(100 * fresh.mean, place, "o", mec="#1f6fb2", mfc=fill, markersize=7)
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
