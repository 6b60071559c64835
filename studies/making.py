"""Runs of a study made and kept, apart from the store of the tables."""

import sys
from collections.abc import Sequence
from pathlib import Path

from recollect.cli.terminal.sweeping import Wishes, sweep_shown
from recollect.experiments.executors.workforce import Workforce
from recollect.experiments.records.store import Store
from recollect.experiments.specs.request import Request
from recollect.experiments.tuning.choose import Kept
from studies.kept import identity, write_kept

WORK = Path(__file__).parents[1] / "runs" / "tuning"


def make(
    wanted: Sequence[Request], kept: Kept, path: Path, *, workers: int, is_slim: bool = True
) -> Kept:
    """Make runs and keep their records; a run that failed is a result, and is not tried again."""
    if not wanted:
        return kept
    store = Store(WORK)
    _, stopped_by = sweep_shown(wanted, store, Wishes(Workforce(workers)))
    done = [record for request in wanted if (record := store.record(request)) is not None]
    everything = {**kept, **{identity(record): record for record in done}}
    write_kept(path, everything.values(), is_slim=is_slim)
    if stopped_by is not None:
        sys.exit("Stopped; the same command continues.")
    return everything
