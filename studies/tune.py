"""Choose settings on validation data: run a study, keep its records, write its page.

    python -m studies.tune mnist-split                 # run what is missing, write the page
    python -m studies.tune mnist-split --no-run        # the page from the records there are
    python -m studies.tune mnist-split --write         # and the values into configs/paper

Nothing here can read test data: a study that asks for it is refused. Stop at any time; the same
command continues.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from recollect.cli.terminal.sweeping import sweep_shown
from recollect.experiments.records.store import Store
from recollect.experiments.specs.configs import config_root
from recollect.experiments.specs.request import Request
from studies.kept import identity, read_kept, write_kept
from studies.tuning.choose import Kept, finalists, standings
from studies.tuning.page import write_page
from studies.tuning.settings import write_settings
from studies.tuning.space import Study, Trial, load_study, refuse_test_data, study_path

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "results" / "tuning"
WORK = ROOT / "runs" / "tuning"


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("study", help="name of a file in studies/, such as mnist-split")
    options.add_argument("--methods", nargs="+", help="only these")
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--no-run", action="store_true", help="only read the records there are")
    options.add_argument("--write", action="store_true", help="put the values into configs/paper")
    asked = options.parse_args()
    study = load_study(study_path(asked.study))
    methods = asked.methods or list(study.trials)
    if unknown := [name for name in methods if name not in study.trials]:
        sys.exit(f"no {', '.join(unknown)} in the study; it has {', '.join(study.trials)}.")
    kept_path = KEPT / f"{asked.study}.parquet"
    kept: Kept = read_kept(kept_path)
    if not asked.no_run:
        for wanted in (first_stage, second_stage):
            runs = [r for r in wanted(study, methods, kept) if _identity(r) not in kept]
            kept = make(runs, kept, kept_path, workers=asked.workers)
    found = {method: standings(study, method, kept) for method in study.trials}
    print(f"wrote {write_page(study, found, kept, KEPT / asked.study)}")
    if asked.write:
        if study.config is None:
            sys.exit(f"{asked.study} only looks: it has no spec to write settings into.")
        write_settings(study, found, config_root() / study.config)


def first_stage(study: Study, methods: Sequence[str], kept: Kept) -> list[Request]:  # noqa: ARG001
    """Return every trial with every seed of the first stage, seed by seed."""
    trials = [trial for method in methods for trial in study.trials[method]]
    return requests_for(study, trials, study.budget.first_seeds)


def second_stage(study: Study, methods: Sequence[str], kept: Kept) -> list[Request]:
    """Return the finalists with every fresh seed."""
    trials = [trial for method in methods for trial in finalists(study, method, kept)]
    return requests_for(study, trials, study.budget.second_seeds)


def requests_for(study: Study, trials: Sequence[Trial], seeds: range) -> list[Request]:
    """Ask for runs, each once; none that would look at test data.

    Raises:
        ConfigError: One would.
    """
    refuse_test_data(trial.cell for trial in trials)
    asked: dict[tuple[str, int], Request] = {}
    for seed in seeds:
        for trial in trials:
            request = Request(trial.cell, seed, f"python -m studies.tune {study.name}")
            asked.setdefault(_identity(request), request)
    return list(asked.values())


def make(
    wanted: Sequence[Request], kept: Kept, path: Path, *, workers: int, is_slim: bool = True
) -> Kept:
    """Make runs and keep their records; a run that failed is a result, and is not tried again."""
    if not wanted:
        return kept
    store = Store(WORK)
    _, stopped_by = sweep_shown(wanted, store, workers=workers)
    done = [record for request in wanted if (record := store.record(request)) is not None]
    everything = {**kept, **{identity(record): record for record in done}}
    write_kept(path, everything.values(), is_slim=is_slim)
    if stopped_by is not None:
        sys.exit("Stopped; the same command continues.")
    return everything


def _identity(request: Request) -> tuple[str, int]:
    return request.cell.spec_hash, request.seed


if __name__ == "__main__":
    main()
