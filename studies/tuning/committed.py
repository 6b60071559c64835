"""Searches whose records are committed: trials in `NAME.json`, runs in `NAME.parquet`.

The first ones were made by a forerunner of `recollect tune`, of which only these files are left.
"""

from pathlib import Path
from typing import Final

from recollect.experiments.tuning.choose import Kept, Standing, standings
from recollect.experiments.tuning.study import Study, read_study
from studies.kept import read_kept

ROOT: Final = Path(__file__).parents[2]
KEPT: Final = ROOT / "results" / "tuning"


def committed_study(name: str) -> Study:
    """Return what a committed search tried."""
    return read_study(KEPT / f"{name}.json")


def committed_runs(name: str) -> Kept:
    """Return its records; none of a search that is still running elsewhere."""
    return read_kept(KEPT / f"{name}.parquet")


def all_standings(study: Study, kept: Kept) -> dict[str, list[Standing]]:
    """Return how each trial did, by method."""
    return {method: standings(study, method, kept) for method in study.trials}
