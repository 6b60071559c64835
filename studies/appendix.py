"""Small tables of the appendices: what was searched, and CIFAR10-S seed by seed."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

from recollect.experiments.tuning.study import Study
from recollect.reports.cells import CellRuns, final_accuracy
from recollect.reports.names import benchmark_title, method_title
from recollect.reports.numbers import points

_NONE: Final = ""


def tuned_table(studies: Sequence[Study], unsearched: Mapping[str, str]) -> str:
    """Say for each benchmark what was searched, with how many trials and seeds.

    Args:
        studies: The searches that chose the settings.
        unsearched: By benchmark without one, where its settings come from.
    """
    lines = [
        "| benchmark | methods searched | trials per method | seeds | best on fresh seeds "
        "| examples per segment | optimizer |",
        "|---|---|---|---|---|---|---|",
    ]
    for study in studies:
        budget = study.budget
        fresh = f"{budget.finalists} on {budget.fresh_seeds}" if budget.fresh_seeds else "none"
        names = [method_title(name) for name in study.trials]
        few = ", ".join(names) if len(names) < 4 else f"all {len(names)}"
        entries = [
            benchmark_title(study.benchmark),
            few,
            str(budget.all_trials),
            str(budget.seeds),
            fresh,
            str(study.spec["stream"]["examples_per_segment"] or "all"),
            str(study.spec["optimizer"]["name"]).upper(),
        ]
        lines.append("| " + " | ".join(entries) + " |")
    for benchmark, source in unsearched.items():
        lines.append(f"| {benchmark_title(benchmark)} | none: {source} | | | | | |")
    return "\n".join(lines)


def by_seed_table(cells: Mapping[str, CellRuns], methods: Sequence[str]) -> str:
    """Return one row per method: its difference to ER at each seed."""
    baseline = cells["er"].by_seed(final_accuracy)
    seeds = sorted(baseline)
    lines = [
        "| minus ER, at seed | " + " | ".join(str(seed) for seed in seeds) + " |",
        "|---" * (1 + len(seeds)) + "|",
    ]
    for method in methods:
        found = cells[method].by_seed(final_accuracy)
        gains = [points(found[s] - baseline[s]) if s in found else _NONE for s in seeds]
        lines.append("| " + " | ".join([method_title(method), *gains]) + " |")
    return "\n".join(lines)


def first_class_table(cells: Mapping[str, CellRuns], methods: Sequence[str]) -> str:
    """Return how many slots the first class has at the end: least, median and most over seeds."""
    lines = ["| method | least | median | most |", "|---|---|---|---|"]
    for method in methods:
        slots = [run.memory[-1].counts[0] for run in cells[method].records]
        entries = [str(min(slots)), f"{median(slots):g}", str(max(slots))]
        lines.append("| " + " | ".join([method_title(method), *entries]) + " |")
    return "\n".join(lines)
