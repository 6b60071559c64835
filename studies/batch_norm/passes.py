"""What BatchNorm does to replay: one pass or two, and what a rule's weights multiply."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from recollect.experiments.records.record import Record
from recollect.reports.cells import (
    CellRuns,
    accuracy_just_learnt,
    final_accuracy,
    final_forgetting,
    group_cells,
    prequential_accuracy,
)
from recollect.reports.names import method_title
from recollect.reports.numbers import percent, points
from recollect.reports.statistics import Summary, summarise
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
    "| forgetting, joint | separate | joint minus separate | just learnt, joint minus separate "
    "| prequential, joint | separate |",
    "|---|---|---|---|---|---|---|---|---|---|---|",
)


def passes_table(records: Sequence[Record]) -> str:
    """Return one row per method: a joint pass beside separate ones, on the same seeds."""
    joint = View(_BENCHMARK, "joint").cells(records)
    separate = View(_BENCHMARK, "separate").cells(records)
    return _table(
        [
            (method_title(method), joint.get(method), separate.get(method))
            for method in PAPER_METHODS
            if method != "van"  # nothing is replayed
        ]
    )


def short_passes_table(
    readings: Sequence[Record], pairs: Sequence[tuple[str, str, str]] = CIFAR_PAIRS
) -> str:
    """Return the same for readings of short streams."""
    found = {cell.method: cell for cell in group_cells(readings)}
    return _table(
        [(label, found.get(joint), found.get(separate)) for label, joint, separate in pairs]
    )


@dataclass(frozen=True)
class _Pairs:
    """Runs that differ in their passes alone, seed by seed: joint, then separate."""

    joint: Sequence[Record]
    separate: Sequence[Record]

    def entries(self, written: Callable[[Summary], str]) -> str:
        """Return what stands in a row; `written` is how it says a difference."""
        entries = [str(len(self.joint))]
        for metric in (final_accuracy, final_forgetting):
            sides = ([metric(run) for run in runs] for runs in (self.joint, self.separate))
            entries += [spread(summarise(side)) for side in sides]
            entries.append(written(self._difference(metric)))
        entries.append(written(self._difference(accuracy_just_learnt)))
        for side in (self.joint, self.separate):
            entries.append(spread(summarise([prequential_accuracy(r) or 0.0 for r in side])))
        return " | ".join(entries)

    def _difference(self, metric: Callable[[Record], float]) -> Summary:
        both = zip(self.joint, self.separate, strict=True)
        return summarise([metric(joint) - metric(separate) for joint, separate in both])


def _table(rows: Sequence[tuple[str, CellRuns | None, CellRuns | None]]) -> str:
    lines, known = list(_HEAD), []
    for label, joint, separate in rows:
        pairs = _pairs(joint, separate)
        if pairs.joint:
            known.append(pairs)
            lines.append(f"| {label} | {pairs.entries(signed)} |")
        else:
            lines.append(f"| {label} | 0 | {NOT_RUN} | | | | | | | | |")
    if len(known) > 2:
        together = _Pairs(
            [run for pairs in known for run in pairs.joint],
            [run for pairs in known for run in pairs.separate],
        )
        # Methods share their seeds' streams: a spread may be told of them, an interval not.
        lines.append(f"| all pairs of runs | {together.entries(_with_spread)} |")
    return "\n".join(lines)


def _pairs(joint: CellRuns | None, separate: CellRuns | None) -> _Pairs:
    if joint is None or separate is None:
        return _Pairs([], [])
    common = {*joint.seeds} & {*separate.seeds}
    mine, theirs = ([r for r in cell.records if r.seed in common] for cell in (joint, separate))
    return _Pairs(mine, theirs)


def _with_spread(difference: Summary) -> str:
    around = "" if difference.sd is None else f" ± {percent(difference.sd)}"
    return points(difference.mean) + around


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
