"""Pages of committed searches, and their choices in the package's specs.

recollect tune studies/mnist-split.toml                          # search
python -m studies.tuning mnist-split --keep runs/tune/mnist-split  # and commit what it found
python -m studies.tuning mnist-split                             # its page from the records
python -m studies.tuning mnist-split --write                     # its choices into configs/paper
"""

import argparse
import dataclasses
import sys
from pathlib import Path

from recollect.experiments.records.store import Store
from recollect.experiments.specs.configs import config_root
from recollect.experiments.tuning.choose import by_identity
from recollect.experiments.tuning.study import read_study, write_study
from recollect.reports.tuning.markdown import write_markdown
from studies.kept import write_kept
from studies.tuning.committed import KEPT, all_standings, committed_runs, committed_study
from studies.tuning.settings import write_settings


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("study", help="name of a search, such as mnist-split")
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="what `recollect tune` made")
    options.add_argument("--config", help="with --keep: the spec below configs/ it chooses for")
    options.add_argument("--write", action="store_true", help="put the values into the spec")
    asked = options.parse_args()
    if asked.keep is not None:
        keep(asked.keep, asked.study, asked.config)
    study, kept = committed_study(asked.study), committed_runs(asked.study)
    found = all_standings(study, kept)
    print(f"wrote {write_markdown(study, found, kept, KEPT / study.name)}")
    if asked.write:
        if study.config is None:
            sys.exit(f"{study.name} only looks: it has no spec to write settings into.")
        write_settings(study, found, config_root() / study.config)


def keep(folder: Path, name: str, config: str | None) -> None:
    """Put trials and records of a finished search where committed ones are."""
    study = dataclasses.replace(read_study(folder / f"{name}.json"), config=config)
    own = {trial.spec_hash for trials in study.trials.values() for trial in trials}
    records = by_identity(Store(folder).records())
    write_kept(KEPT / f"{name}.parquet", (r for (spec, _), r in records.items() if spec in own))
    write_study(study, KEPT / f"{name}.json")


if __name__ == "__main__":
    main()
