"""Put the runs of each cell in `results/` into one file, before they are committed.

python -m studies.pack && python -m studies.document
"""

from pathlib import Path
from typing import Final

from recollect.experiments.records.store import Store

ROOT: Final = Path(__file__).parents[1]
# The tables; the same at the lineage's rate; MNIST-S of the tables on another kind of processor;
# other optimizers, and the settings of the tables on the seeds of those.
STORES: Final = (
    "results",
    "results/lineage",
    "results/another-machine",
    "results/optimizers",
    "results/longer-search",
    "results/measured",
)


def present_stores() -> list[Path]:
    """Return the folders of those that have runs: a study that is planned has none yet."""
    return [ROOT / store for store in STORES if (ROOT / store / "records").exists()]


def main() -> None:
    for store in present_stores():
        for path in Store(store).pack():
            print(f"packed {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
