"""The same seeds on two kinds of processor, and fresh seeds: what rounding makes of a result.

A seed fixes the stream, the initial weights and every draw. Two kinds of processor add up in
another order, and a run of hundreds of updates makes a difference of its own out of that.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from recollect.experiments.records.record import Record
from recollect.reports.cells import CellRuns, final_accuracy
from recollect.reports.names import method_title
from recollect.reports.numbers import percent
from recollect.reports.statistics import Summary, paired_difference
from studies.machines.again import counts
from studies.tables import NOT_RUN, View, pair_title, signed, spread

NUM_FIRST: Final = 30  # seeds that the tables were planned with
METHODS: Final = ("van", "er", "er-p", "er-c", "er-pc", "gss", "er-mir", "er-pc-mir", "er-p-mir")
PAIRS: Final = (
    ("er-p", "er"),
    ("er-c", "er"),
    ("er-pc", "er"),
    ("er-pc", "er-p"),
    ("er-mir", "er"),
    ("er-pc-mir", "er-mir"),
    ("er-p-mir", "er-mir"),
    ("er-pc-mir", "er-p-mir"),
)


def machines_table(view: View, records: Sequence[Record], elsewhere: Sequence[Record]) -> str:
    """Return one row per method: its accuracy on both, and how far two runs of a seed differ."""
    ones, others = view.cells(_first(records)), view.cells(elsewhere)
    both = [method for method in METHODS if method in ones and method in others]
    if not both:
        return NOT_RUN
    headings = [
        "method",
        "n",
        *(f"accuracy, {_processor(found)}" for found in (ones, others)),
        "difference",
        "its spread at one seed",
        "were seeds unrelated",
        "runs alike",
    ]
    rows = [[method_title(method), *_beside(ones[method], others[method])] for method in both]
    return _table(headings, rows)


def makings(
    view: View, records: Sequence[Record], elsewhere: Sequence[Record]
) -> dict[str, dict[str, CellRuns]]:
    """Return cells by method of the first seeds, of the same elsewhere, and of fresh ones."""
    fresh = [record for record in records if record.seed >= NUM_FIRST]
    made = {"the first seeds": _first(records), "the same seeds": elsewhere, "fresh seeds": fresh}
    found = {which: view.cells(runs) for which, runs in made.items()}
    return {f"{which}, {_processor(cells)}": cells for which, cells in found.items() if cells}


def repeats_table(view: View, records: Sequence[Record], elsewhere: Sequence[Record]) -> str:
    """Return one row a comparison, one column a making, and one of all seeds on one processor."""
    found = makings(view, records, elsewhere)
    if elsewhere:
        fresh = [record for record in records if record.seed >= NUM_FIRST]
        cells = view.cells([*elsewhere, *fresh])
        found[f"all seeds, {_processor(cells)}"] = cells
    return pairs_table(found)


def pairs_table(found: Mapping[str, Mapping[str, CellRuns]]) -> str:
    """Return one row a comparison, one column a set of runs.

    Args:
        found: By the heading of its column, cells by method.
    """
    rows = [
        [pair_title(one, other)]
        + [with_count(minus(cells, one, other)) for cells in found.values()]
        for one, other in PAIRS
    ]
    return _table(["accuracy", *found], rows) if found else NOT_RUN


def minus(found: Mapping[str, CellRuns], one: str, other: str) -> Summary | None:
    """Compare two methods over their common seeds; None if there are none."""
    return _apart(found[one], found[other]) if one in found and other in found else None


def with_count(difference: Summary | None) -> str:
    """Return a difference, its interval and n; or one seed's, or that there is none."""
    if difference is None:
        return NOT_RUN
    return signed(difference) + ("" if difference.n == 1 else f", n={difference.n}")


def _first(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.seed < NUM_FIRST]


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _beside(one: CellRuns, other: CellRuns) -> list[str]:
    difference = _apart(one, other)
    if difference is None:
        return ["0", *[""] * 6]
    accuracies = [cell.summary(final_accuracy) for cell in (one, other)]
    unrelated = math.hypot(*(accuracy.sd or 0.0 for accuracy in accuracies))
    rerun = {record.seed: counts(record) for record in other.records}
    alike = sum(counts(record) == rerun.get(record.seed) for record in one.records)
    return [
        str(difference.n),
        *map(spread, accuracies),
        signed(difference),
        "" if difference.sd is None else percent(difference.sd),
        percent(unrelated),
        f"{alike} of {difference.n}",
    ]


def _apart(one: CellRuns, other: CellRuns) -> Summary | None:
    return paired_difference(one.by_seed(final_accuracy), other.by_seed(final_accuracy)).summary


def _processor(found: Mapping[str, CellRuns]) -> str:
    """Return the maker of the processor that most runs were made on."""
    models = Counter(run.machine["cpu"] for cell in found.values() for run in cell.records)
    return models.most_common(1)[0][0].partition(" ")[0].partition("(")[0]
