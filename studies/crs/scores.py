"""Which part of a CRS score decides who leaves: how often an example was replayed, or its margin?

    python -m studies.crs.scores [--seeds 3] [--study mnist-split]

S = EX + c MI (Eq. 14). ER-C in three readings, as in `studies.readings`: every tenth update, once
the memory is full, we look at the scores of all slots: how far each part spreads, how many scores
are zero or below (those never leave under s2), and how old the next victim is expected to be, by
S and by either part alone. A reservoir's victim is as old as the average slot. Kept in
`results/readings/scores.json`, which `python -m studies.document` makes a table of. Stop at any
time; the same command continues.
"""

import argparse
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Final

import torch
from torch import Tensor

from recollect.experiments.specs.build import build
from recollect.experiments.specs.cell import Cell
from recollect.memory import Memory
from recollect.storage import ConfidenceReservoir
from studies.kept import Row, has_row, made_here, mean_entries, read_rows, write_rows
from studies.readings.studies import CIFAR, FIRST_SEED, MNIST, ROOT
from studies.tables import NOT_RUN

KEPT: Final = ROOT / "results" / "readings" / "scores.json"
READINGS: Final[Mapping[str, Mapping[str, str]]] = {
    MNIST.name: {
        "s1-insertion": "s1, MI at insertion",
        "s1-replay": "s1, MI at replay",
        "s2-clamp": "s2, MI at insertion",
    },
    CIFAR.name: {
        "s1-insertion": "s1, MI at insertion",
        "s1-replay": "s1, MI at replay",
        "s2-insertion": "s2, MI at insertion",
    },
}
_EVERY: Final = 10  # updates between two looks


def look(storage: ConfidenceReservoir, memory: Memory) -> dict[str, float]:
    """Take the scores of a full memory apart."""
    ages = memory.ages().double()
    scores = storage.scores(memory).double()
    rates = memory.times_replayed.double() / (ages + storage.age_offset)
    margins = scores - rates

    def victim_age(parts: Tensor) -> float:
        """Age of who leaves, were these the scores, over the age of the average slot."""
        if storage.pick == "highest":
            return (ages[parts.argmax()] / ages.mean()).item()
        shares = parts.clamp_min(0)
        if not shares.sum() > 0:  # then s2 draws alike
            return 1.0
        return ((shares * ages).sum() / shares.sum() / ages.mean()).item()

    return {
        "sd_rates": rates.std().item(),
        "sd_margins": margins.std().item(),
        "never_leave": (scores <= 0).double().mean().item(),
        "age_by_score": victim_age(scores),
        "age_by_rates": victim_age(rates),
        "age_by_margins": victim_age(margins),
    }


def trial(study: str, cell: Cell, seed: int) -> Row:
    """Train on the stream and look at the scores on the way."""
    benchmark, learner = build(cell, seed)
    storage, memory = learner.storage, learner.memory
    assert isinstance(storage, ConfidenceReservoir)
    assert memory is not None
    looks = []
    for step, (inputs, labels) in enumerate(benchmark.stream, start=1):
        learner.observe(inputs, labels)
        if memory.is_full and step % _EVERY == 0:
            looks.append(look(storage, memory))
    return {
        "study": study,
        "reading": cell.method,
        "seed": seed,
        "spec_hash": cell.spec_hash,
        **{name: fmean(seen[name] for seen in looks) for name in looks[0]},
        **made_here(),
    }


def scores_table(rows: Sequence[Row]) -> str:
    """Return one row a benchmark and reading, means over seeds."""
    lines = [
        "| benchmark | reading | n | spread of EX | spread of c MI | scores of 0 and below "
        "| age of the next victim | by EX alone | by MI alone |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for study in (MNIST, CIFAR):
        for reading, label in READINGS[study.name].items():
            own = [r for r in rows if (r["study"], r["reading"]) == (study.name, reading)]
            if not own:
                lines.append(f"| {study.title} | {label} | 0 | {NOT_RUN} | | | | | |")
                continue
            entries = " | ".join(mean_entries(own, _FORMATS))
            lines.append(f"| {study.title} | {label} | {len(own)} | {entries} |")
    return "\n".join(lines)


_FORMATS: Final[Mapping[str, str]] = {
    "sd_rates": "{:.3f}",
    "sd_margins": "{:.3f}",
    "never_leave": "{:.0%}",
    "age_by_score": "{:.2f}",
    "age_by_rates": "{:.2f}",
    "age_by_margins": "{:.2f}",
}


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--study", choices=list(READINGS), help="this one, not both")
    asked = options.parse_args()
    torch.set_num_threads(1)
    rows = read_rows(KEPT)
    for study in (MNIST, CIFAR):
        if asked.study not in (None, study.name):
            continue
        cells = {cell.method: cell for cell in study.cells()}
        for seed in range(FIRST_SEED, FIRST_SEED + asked.seeds):
            for reading in READINGS[study.name]:
                cell = cells[reading]
                if has_row(rows, cell, seed):
                    continue
                rows.append(trial(study.name, cell, seed))
                rows.sort(key=lambda row: (row["study"], row["reading"], row["seed"]))
                write_rows(KEPT, rows)
                print(f"{study.name} {reading} seed {seed}: done", flush=True)
    print(scores_table(rows))


if __name__ == "__main__":
    main()
