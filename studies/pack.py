"""Put the runs of each cell in `results/` into one file, before they are committed.

python -m studies.pack && python -m studies.document
"""

from pathlib import Path

from recollect.experiments.store import Store

ROOT = Path(__file__).parents[1]


def main() -> None:
    for store in ("results", "results/lineage"):
        for path in Store(ROOT / store).pack():
            print(f"packed {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
