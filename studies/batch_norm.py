"""What BatchNorm does to replay: one pass or two, and what a rule's weights multiply."""

import json
from collections.abc import Iterable, Sequence
from typing import Final

from recollect.experiments.record import Record
from recollect.reports.cells import (
    CellRuns,
    final_accuracy,
    final_forgetting,
    group_cells,
    prequential_accuracy,
)
from recollect.reports.names import method_title
from recollect.reports.numbers import percent
from recollect.reports.statistics import paired_difference, summarise
from studies.tables import NOT_RUN, PAPER_METHODS, View, signed, spread

_BENCHMARK: Final = "cifar10-split"


# Readings that differ in their passes alone: joint, then separate.
CIFAR_PAIRS: Final = (
    ("ER, lr 0.05", "er", "er-separate"),
    ("ER, lr 0.1", "er-fast", "er-lineage"),
    ("ER-P, lr 0.05", "p", "p-separate"),
)
_HEAD: Final = (
    "| method | n | joint | separate | joint minus separate "
    "| forgetting, joint | separate | joint minus separate | prequential, joint | separate |",
    "|---|---|---|---|---|---|---|---|---|---|",
)


def passes_table(records: Sequence[Record]) -> str:
    """Return one row a method: a joint pass beside separate ones, on the same seeds."""
    joint = View(_BENCHMARK, "joint").cells(records)
    separate = View(_BENCHMARK, "separate").cells(records)
    rows = [
        _passes_row(method_title(method), joint.get(method), separate.get(method))
        for method in PAPER_METHODS
        if method != "van"
    ]
    return "\n".join([*_HEAD, *rows])


def short_passes_table(
    readings: Sequence[Record], pairs: Sequence[tuple[str, str, str]] = CIFAR_PAIRS
) -> str:
    """Return the same for readings of short streams."""
    found = {cell.method: cell for cell in group_cells(readings)}
    rows = [
        _passes_row(label, found.get(joint), found.get(separate))
        for label, joint, separate in pairs
    ]
    return "\n".join([*_HEAD, *rows])


def _passes_row(label: str, joint: CellRuns | None, separate: CellRuns | None) -> str:
    common = [] if joint is None or separate is None else sorted({*joint.seeds} & {*separate.seeds})
    if joint is None or separate is None or not common:
        return f"| {label} | 0 | {NOT_RUN} | | | | | | | |"
    entries = []
    for metric in (final_accuracy, final_forgetting):
        mine, theirs = joint.by_seed(metric), separate.by_seed(metric)
        difference = paired_difference(mine, theirs).summary
        entries += [
            spread(summarise([mine[seed] for seed in common])),
            spread(summarise([theirs[seed] for seed in common])),
            "" if difference is None else signed(difference),
        ]
    for cell in (joint, separate):
        met = [record for record in cell.records if record.seed in common]
        entries.append(spread(summarise([prequential_accuracy(record) or 0.0 for record in met])))
    return "| " + " | ".join([label, str(len(common)), *entries]) + " |"


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
        scores = final_accuracy(record), prequential_accuracy(record) or 0.0
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
