"""`--dry-run`: what a command would run, and about how long that takes."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from recollect.cli.terminal.progress import duration
from recollect.experiments.executors.workforce import num_at_once
from recollect.experiments.records.store import Store
from recollect.experiments.running.half_precision import bfloat16_ratio
from recollect.experiments.running.machine import usable_cores
from recollect.experiments.running.missing import MissingRuns, missing_runs
from recollect.experiments.specs.cell import Cell

_PAYS: Final = 0.9  # of float32's time; what is gained above this is within the noise


def show_missing(
    cells: Sequence[Cell],
    seeds: range,
    out: Path,
    *,
    workers: int | None,
    on: str | None = None,
    is_fresh: bool = False,
    is_json: bool = False,
) -> None:
    """Print the runs that the store lacks, cell by cell, with times estimated from its records."""
    num_workers = num_at_once(on, workers or usable_cores())
    missing = missing_runs(cells, seeds, Store(out), is_fresh=is_fresh)
    ratio = bfloat16_ratio(missing[0].cell) if missing else None
    if is_json:
        rows = [_facts(runs) for runs in missing]
        print(json.dumps({"event": "missing", "rows": rows, "bfloat16_ratio": ratio}))
        return
    console = Console(markup=False)
    console = console if console.is_terminal else Console(width=140, markup=False)
    if missing:
        console.print(_table(missing), highlight=False)
    told = _in_all(missing, len(cells) * len(seeds), num_workers)
    console.print(told, highlight=False)
    if ratio is not None:
        console.print(_of_bfloat16(ratio), highlight=False)


def _table(missing: Sequence[MissingRuns]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("benchmark", "method", "passes"):
        table.add_column(heading)
    for heading in ("memory", "there", "missing", "CPU time per run", "in all"):
        table.add_column(heading, justify="right")
    table.add_column("seeds")
    for runs in missing:
        cell = runs.cell
        table.add_row(
            *(cell.benchmark, cell.method, cell.learner["passes"], str(cell.capacity or "-")),
            *(str(runs.num_there), f"{runs.num_runs:,}"),
            *(_time(runs.seconds), _time(runs.total_seconds), seeds_in_words(runs.seeds)),
        )
    return table


def _in_all(missing: Sequence[MissingRuns], num_wanted: int, workers: int) -> str:
    num_runs = sum(runs.num_runs for runs in missing)
    if not num_runs:
        return f"Nothing is missing: all {num_wanted:,} runs are there."
    told = f"{num_runs:,} of {num_wanted:,} runs are missing"
    known = [runs.total_seconds for runs in missing if runs.total_seconds is not None]
    if known:
        # A run is made by one worker: the longest is the least there is to wait for.
        longest = max(runs.seconds for runs in missing if runs.seconds is not None)
        alone, shared = sum(known), max(longest, sum(known) / workers)
        told += f": about {duration(alone)} of CPU time"
        told += f", {duration(shared)} with {workers} workers" if workers > 1 else ""
    told += "."
    if num_unknown := sum(runs.num_runs for runs in missing if runs.seconds is None):
        told += f" No record tells how long {num_unknown:,} of them take."
    return told


def _of_bfloat16(ratio: float) -> str:
    told = f"A step in bfloat16 takes {ratio:.2f} times that in float32 on this processor"
    if ratio < _PAYS:
        return f'{told}: --set learner.dtype="bfloat16" makes cells of their own.'
    return f"{told}: stay with float32."


def _time(seconds: float | None) -> str:
    return "?" if seconds is None else duration(seconds)


def _facts(runs: MissingRuns) -> dict[str, object]:
    cell = runs.cell
    return {
        "benchmark": cell.benchmark,
        "method": cell.method,
        "capacity": cell.capacity,
        "passes": cell.learner["passes"],
        "spec_hash": cell.spec_hash,
        "num_there": runs.num_there,
        "num_missing": runs.num_runs,
        "seeds": [[gap.start, gap.stop - 1] for gap in runs.seeds],
        "seconds_a_run": runs.seconds,
    }


def seeds_in_words(seeds: Sequence[range], *, most: int = 5) -> str:
    """Write ascending ranges of seeds shortly.

    Example:
        >>> seeds_in_words([range(0, 1), range(2, 5), range(7, 9)])
        '0, 2 to 4, 7, 8'
    """
    shown = ", ".join(
        f"{gap[0]} to {gap[-1]}" if len(gap) > 2 else ", ".join(map(str, gap))
        for gap in seeds[:most]
    )
    return f"{shown} and {len(seeds) - most} more ranges" if len(seeds) > most else shown
