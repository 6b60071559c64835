"""What BatchNorm does to replay: one pass or two, and what a rule's weights multiply."""

import json
from collections.abc import Iterable, Sequence
from typing import Final

from recollect.experiments.record import Record
from recollect.reports.cells import final_accuracy, final_forgetting
from recollect.reports.names import method_title
from recollect.reports.numbers import percent
from recollect.reports.statistics import paired_difference, summarise
from studies.tables import NOT_RUN, PAPER_METHODS, View, signed, spread

_BENCHMARK: Final = "cifar10-split"


def passes_table(records: Sequence[Record]) -> str:
    """Return one row a method: a joint pass beside separate ones, on the same seeds."""
    joint = View(_BENCHMARK, "joint").cells(records)
    separate = View(_BENCHMARK, "separate").cells(records)
    lines = [
        "| method | n | joint | separate | joint minus separate "
        "| forgetting, joint | separate | joint minus separate |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for method in (method for method in PAPER_METHODS if method != "van"):
        runs = [found[method] for found in (joint, separate) if method in found]
        seeds = [set(cell.by_seed(final_accuracy)) for cell in runs]
        common = sorted(set.intersection(*seeds)) if len(runs) == 2 else []
        if not common:
            lines.append(f"| {method_title(method)} | 0 | {NOT_RUN} | | | | | |")
            continue
        entries = []
        for metric in (final_accuracy, final_forgetting):
            mine, theirs = (cell.by_seed(metric) for cell in runs)
            difference = paired_difference(mine, theirs).summary
            entries += [
                spread(summarise([mine[seed] for seed in common])),
                spread(summarise([theirs[seed] for seed in common])),
                "" if difference is None else signed(difference),
            ]
        lines.append("| " + " | ".join([method_title(method), str(len(common)), *entries]) + " |")
    return "\n".join(lines)


def weighing_table(kept: Iterable[Record]) -> str:
    """Return one row a trial of PGD's: weights on losses beside weights on contributions."""
    rows = []
    for record in kept:
        spec = json.loads(record.spec)
        if spec["base"] not in ("er", "er-p"):
            continue
        options, learner = spec["options"], spec["learner"]
        on = learner.get("weighs", "losses") if spec["base"] == "er-p" else ""
        settings = [spec["optimizer"]["lr"]]
        settings += [options.get(key, "") for key in ("step_size", "norm_floor", "target_floor")]
        scores = final_accuracy(record), record.prequential_correct / record.prequential_total
        rows.append((spec["base"], on, *settings, *(percent(score) for score in scores)))
    rows.sort(key=lambda row: (row[0], row[1], -float(row[-2])))
    lines = [
        "| rule | weights on | lr | lambda | eps | floor of norm(w) "
        "| accuracy at the end | prequential accuracy |",
        "|---|---|---|---|---|---|---|---|",
    ]
    titles = {"er": "sum (ER)", "er-p": "PGD (ER-P)"}
    for base, *entries in rows:
        lines.append("| " + " | ".join([titles[base], *map(_plain, entries)]) + " |")
    return "\n".join(lines)


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
