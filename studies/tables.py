"""Tables of our own results: every number from records, with n, spread and paired differences."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from recollect.experiments.records.record import Record
from recollect.paper.numbers import CAPACITY, EXHIBITS, Metric
from recollect.reports.cells import (
    CellRuns,
    accuracy_just_learnt,
    final_accuracy,
    final_forgetting,
    flat_spec,
    group_cells,
)
from recollect.reports.names import benchmark_title, method_title
from recollect.reports.numbers import certainty, percent, points, seconds
from recollect.reports.statistics import (
    PairedDifference,
    Summary,
    corrected,
    paired_difference,
    summarise,
)

NOT_RUN: Final = "not yet run"
PAPER_METHODS: Final = ("van", "er", "er-p", "er-c", "er-pc", "gss", "er-mir", "er-pc-mir")
# Ours, each beside what it changes.
BEYOND: Final[Mapping[str, str]] = {
    "a-gem": "er",
    "er-cb": "er",
    "er-p-cb": "er-p",
    "er-p-mir": "er-mir",
    "er-p-converged": "er-p",
    "er-c-equal": "er-c",
    "er-pc-equal": "er-pc",
    "er-pc-mir-equal": "er-pc-mir",
}
REPORTED: Final = {
    (cell.metric, cell.benchmark, cell.method): cell.reported
    for exhibit in EXHIBITS.values()
    for cell in exhibit.cells
    if cell.reported is not None and cell.capacity == CAPACITY[cell.benchmark]
}


@dataclass(frozen=True)
class View:
    """Which runs a table is about.

    Attributes:
        benchmark: Name of the benchmark.
        passes: How examples passed the network; None where it does not matter.
        capacity: Slots; the paper's if None.
    """

    benchmark: str
    passes: str | None = None
    capacity: int | None = None

    def cells(self, records: Iterable[Record]) -> dict[str, CellRuns]:
        """Return the cells by method; of several specs the one with most seeds."""
        size = self.capacity or CAPACITY[self.benchmark]
        found: dict[str, CellRuns] = {}
        for cell in group_cells(record for record in records if self._shows(record)):
            if cell.capacity not in (0, size):
                continue
            rival = found.get(cell.method)
            if rival is None or len(cell.records) > len(rival.records):
                found[cell.method] = cell
        return found

    def _shows(self, record: Record) -> bool:
        spec = flat_spec(record)
        return (
            record.benchmark == self.benchmark
            and record.protocol == "paper"
            and spec.get("evaluation.on") == '"test"'
            and spec.get("model.norm", '"batch"') == '"batch"'
            and (self.passes is None or record.method == "van" or self._passes(record.passes))
        )

    def _passes(self, passes: str) -> bool:
        return passes == self.passes or (self.passes == "separate" and passes == "grouped")


def results_table(
    view: View, records: Sequence[Record], methods: Sequence[str] = PAPER_METHODS
) -> str:
    """Return one row per method: ours, the difference to ER on the same seeds, the paper's."""
    found = view.cells(records)
    differences = against(found, dict.fromkeys((m for m in methods if m != "er"), "er"))
    lines = [
        "| method | n | accuracy | 95 % interval | forgetting | just learnt | minus ER | p (Holm) "
        "| paper's accuracy | paper's forgetting | CPU time per run |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for method in methods:
        reported = [_reported(metric, view, method) for metric in ("accuracy", "forgetting")]
        cell = found.get(method)
        if cell is None:
            entries = ["0", NOT_RUN, *[""] * 5, *reported, ""]
        else:
            entries = [*numbers(cell), *difference_entries(differences.get(method)), *reported]
            entries.append(_time(cell))
        lines.append("| " + " | ".join([method_title(method), *entries]) + " |")
    return "\n".join(lines)


def beyond_table(view: View, records: Sequence[Record], methods: Sequence[str]) -> str:
    """Return one row for each method of ours, against ER and against what it changes."""
    found = view.cells(records)
    to_er = against(found, dict.fromkeys(methods, "er"))
    to_base = against(found, {method: BEYOND[method] for method in methods})
    lines = [
        "| method | n | accuracy | 95 % interval | forgetting | just learnt | minus ER | p (Holm) "
        "| minus | | p (Holm) |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for method in methods:
        cell = found.get(method)
        if cell is None:
            entries = ["0", NOT_RUN, *[""] * 8]
        else:
            base = method_title(BEYOND[method])
            entries = [*numbers(cell), *difference_entries(to_er.get(method)), base]
            entries += difference_entries(to_base.get(method))
        lines.append("| " + " | ".join([method_title(method), *entries]) + " |")
    return "\n".join(lines)


# Benchmark, passes of the tuned runs, passes of the lineage's. Without BatchNorm they are the same.
PASSES: Final = (
    ("mnist-split", None, None),
    ("mnist-permuted", None, None),
    ("cifar10-split", "joint", "separate"),
)


def rates_table(tuned: Sequence[Record], lineage: Sequence[Record]) -> str:
    """Return what its own learning rate gives each method, and what that leaves of PGD's gain."""
    lines = [
        "| benchmark | method | n | its learning rate | accuracy | at MIR's rate | gain |",
        "|---|---|---|---|---|---|---|",
    ]
    for benchmark, *passes in PASSES:
        ours, theirs = (
            View(benchmark, way).cells(found)
            for way, found in zip(passes, (tuned, lineage), strict=True)
        )
        for method in PAPER_METHODS:
            if method not in ours or method not in theirs:
                continue
            own, old = (found[method].by_seed(final_accuracy) for found in (ours, theirs))
            difference = paired_difference(own, old).summary
            if difference is None:
                continue
            common = own.keys() & old.keys()
            entries = [
                benchmark_title(benchmark),
                method_title(method),
                str(difference.n),
                flat_spec(ours[method].records[0])["optimizer.lr"],
                *(spread(summarise([run[seed] for seed in common])) for run in (own, old)),
                signed(difference),
            ]
            lines.append("| " + " | ".join(entries) + " |")
    return "\n".join(lines)


def core_minutes(records: Iterable[Record]) -> float:
    """Return the processor time of runs, in minutes."""
    return math.fsum(record.cpu_seconds for record in records) / 60


def against(found: Mapping[str, CellRuns], pairs: Mapping[str, str]) -> dict[str, PairedDifference]:
    """Compare methods with their baselines, corrected over all of them."""
    tested = [(a, b) for a, b in pairs.items() if a in found and b in found and a != b]
    differences = corrected(
        [
            paired_difference(found[a].by_seed(final_accuracy), found[b].by_seed(final_accuracy))
            for a, b in tested
        ]
    )
    return {a: difference for (a, _), difference in zip(tested, differences, strict=True)}


def numbers(cell: CellRuns) -> list[str]:
    """Return n, accuracy, its interval, forgetting and the accuracy just learnt."""
    accuracy = cell.summary(final_accuracy)
    return [
        str(accuracy.n),
        spread(accuracy),
        interval(accuracy),
        spread(cell.summary(final_forgetting)),
        spread(cell.summary(accuracy_just_learnt)),
    ]


def pair_title(one: str, other: str) -> str:
    """Say which two are compared."""
    return f"{method_title(one)} minus {method_title(other)}"


def spread(summary: Summary) -> str:
    """Return mean ± standard deviation in per cent."""
    return percent(summary.mean) + ("" if summary.sd is None else f" ± {percent(summary.sd)}")


def interval(summary: Summary, write: Callable[[float], str] = percent) -> str:
    """Return the 95 % interval of a mean."""
    if summary.low is None or summary.high is None:
        return "one seed"
    return f"[{write(summary.low)}, {write(summary.high)}]"


def signed(summary: Summary) -> str:
    """Return a difference and its interval in percentage points."""
    return f"{points(summary.mean)} {interval(summary, points)}"


def difference_entries(difference: PairedDifference | None) -> list[str]:
    """Return a difference with its interval, and its p-value."""
    if difference is None or difference.summary is None:
        return ["", ""]
    return [signed(difference.summary), certainty(difference)]


def _reported(metric: Metric, view: View, method: str) -> str:
    reported = REPORTED.get((metric, view.benchmark, method))
    return "" if reported is None else f"{reported.mean:.1f} ± {reported.spread:.1f}"


def _time(cell: CellRuns) -> str:
    times = sorted(record.cpu_seconds for record in cell.records)
    return seconds(times[len(times) // 2])
