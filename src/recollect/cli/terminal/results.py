"""The table that `recollect run` ends with."""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.table import Table

from recollect.experiments.records.record import Record
from recollect.reports.numbers import certainty
from recollect.reports.statistics import PairedDifference, Summary
from recollect.reports.summary import SummaryRow, summarise_runs

_FILE_WIDTH: Final = 120
_BETWEEN: Final = 2  # spaces between columns

# What a narrow terminal goes without, the first first: the accuracy's spread can be read elsewhere,
# but a row without its method, seeds, accuracy and forgetting says nothing.
_DISPENSABLE: Final = (
    *(("worst case",), ("sd",), ("interval",), ("any-time",)),
    *(("memory",), ("p",), ("baseline", "difference")),
)


@dataclass(frozen=True)
class _Column:
    heading: str
    values: list[str]
    is_text: bool = False

    @property
    def width(self) -> int:
        return max(len(text) for text in (self.heading, *self.values))


def show_results(records: Sequence[Record], *, is_json: bool) -> None:
    """Print the comparison of runs, as a table or as one JSON object."""
    rows = summarise_runs(records)
    if is_json:
        told = {"event": "summary", "rows": [dataclasses.asdict(row) for row in rows]}
        print(json.dumps(told), flush=True)
    elif rows:
        console, columns = Console(markup=False), _columns(rows)
        if not console.is_terminal:  # in a file a row stays a row, and whole
            console = Console(width=max(_FILE_WIDTH, _width(columns)), markup=False)
        console.print(_table(rows, columns, console.width))
        if mixture := _mixture(records):
            console.print(mixture, style="yellow", highlight=False)


def _table(rows: Sequence[SummaryRow], columns: dict[str, _Column], width: int) -> Table:
    """Draw as much of the comparison as fits: means with intervals, and paired differences."""
    shown = _fitting(columns, width, sizes_differ=len(_sizes(rows)) > 1)
    table = Table(box=None, pad_edge=False, caption_justify="left")
    table.caption = _about(rows, columns, shown)
    for name in shown:
        column = columns[name]
        table.add_column(
            column.heading,
            justify="left" if column.is_text else "right",
            style="bold" if name == "method" else None,
            no_wrap=True,
        )
    for values in zip(*(columns[name].values for name in shown), strict=True):
        table.add_row(*values)
    return table


def _columns(rows: Sequence[SummaryRow]) -> dict[str, _Column]:
    columns = {
        "method": _Column("method", [row.method for row in rows], is_text=True),
        "memory": _Column("memory", [str(row.capacity or "-") for row in rows]),
        "n": _Column("n", [str(row.accuracy.n) for row in rows]),
        "accuracy": _Column("accuracy", [_percent(row.accuracy.mean) for row in rows]),
        "sd": _Column("sd", [_percent(row.accuracy.sd) for row in rows]),
        "interval": _Column("95 % interval", [_interval(row.accuracy) for row in rows]),
        "forgetting": _Column("forgetting", [_percent(row.forgetting.mean) for row in rows]),
    }
    if any(row.seen is not None for row in rows):
        columns["seen"] = _Column("seen", [_percent(row.seen) for row in rows])
    for name, along in (
        ("any-time", [row.area for row in rows]),
        ("worst case", [row.worst_case for row in rows]),
    ):
        if any(along):
            shown = [_percent(None if found is None else found.mean) for found in along]
            columns[name] = _Column(name, shown)
    has_several_sizes = len(_sizes(rows)) > 1
    baselines = [_baseline(row, has_several_sizes=has_several_sizes) for row in rows]
    names = set(baselines) - {""}
    if not names:
        return columns
    heading = f"less {names.pop()}" if len(names) == 1 else "difference"
    if heading == "difference":
        columns["baseline"] = _Column("baseline", baselines, is_text=True)
    differences = [row.difference for row in rows]
    columns["difference"] = _Column(f"{heading} (95 % interval)", [_signed(d) for d in differences])
    columns["p"] = _Column("p", ["" if d is None else certainty(d) for d in differences])
    return columns


def _baseline(row: SummaryRow, *, has_several_sizes: bool) -> str:
    """Name what a row is compared with, and its size where the row's own does not tell it."""
    if row.difference is None:
        return ""
    if has_several_sizes and row.baseline_capacity not in (0, row.capacity):
        return f"{row.baseline}, {row.baseline_capacity} slots"
    return row.baseline


def _fitting(columns: dict[str, _Column], width: int, *, sizes_differ: bool) -> list[str]:
    """Name the columns that fit into a width, or those that there have to be."""
    shown = dict(columns)
    for names in _DISPENSABLE:
        if _width(shown) <= width:
            break
        if names == ("memory",) and sizes_differ:
            continue  # it tells rows apart
        shown = {name: column for name, column in shown.items() if name not in names}
    return list(shown)


def _width(columns: dict[str, _Column]) -> int:
    return sum(column.width for column in columns.values()) + _BETWEEN * (len(columns) - 1)


def _about(rows: Sequence[SummaryRow], columns: dict[str, _Column], shown: Sequence[str]) -> str:
    sizes = "" if "memory" in shown else "".join(f", {size} slots" for size in _sizes(rows))
    about = f"{rows[0].benchmark}, protocol {rows[0].protocol}{sizes}. Per cent; mean over n seeds"
    about += ", sd over seeds" if "sd" in shown else ""
    about += ", 95 % interval of the mean (Student's t)" if "interval" in shown else ""
    about += ". Forgetting as cited by the paper."
    about += " Seen: batches that the budget left time for." if "seen" in shown else ""
    about += " Any-time: area under accuracy over the stream." if "any-time" in shown else ""
    about += " Worst case: WC-ACC." if "worst case" in shown else ""
    if "difference" in shown:
        about += " Difference: accuracy less the baseline's on the same seeds"
    if "p" in shown:
        about += (
            "; p of an exact sign-flip test (paired t above 16 seeds), Holm-corrected over the "
            "table"
        )
    about += "." if "difference" in shown else ""
    left_out = [column.heading for name, column in columns.items() if name not in shown]
    if left_out:
        about += f" Left out of a narrow terminal: {', '.join(left_out)}."
    return about


def _sizes(rows: Sequence[SummaryRow]) -> set[int]:
    return {row.capacity for row in rows if row.capacity}


def _mixture(records: Sequence[Record]) -> str | None:
    """Say so if the runs were not all made by the same code."""
    made_by = {(run.commit, *sorted(run.versions.items())) for run in records}
    if len(made_by) < 2:
        return None
    return (
        f"Careful: these runs were made by {len(made_by)} different states of the code (columns "
        "`commit` and `versions`). For runs that all come from one, choose another --out."
    )


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def _interval(summary: Summary) -> str:
    if summary.low is None or summary.high is None:
        return "-"
    return f"{100 * summary.low:.1f} to {100 * summary.high:.1f}"


def _signed(difference: PairedDifference | None) -> str:
    if difference is None or difference.summary is None:
        return ""
    summary = difference.summary
    mean = f"{100 * summary.mean:+.1f}"
    if summary.low is None or summary.high is None:
        return f"{mean} (n=1)"
    return f"{mean} ({100 * summary.low:+.1f} to {100 * summary.high:+.1f})"
