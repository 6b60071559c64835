"""What PGD does to an update: which weights it gives, and how far from ER's that leads.

    python -m studies.pgd.weights [--seeds 3] [--study mnist-split]

ER-P with the settings of the tables (CIFAR10-S: on short streams). At every update with something
to replay: whether |g| is below the floor of |w|, where f does not see the direction of w and PGD is
a sum of clipped gradients; the weights of g and of replay, in units of ER's; and the target beside
the one that ER would have taken from the same gradients. Kept in `results/readings/pgd.json`, which
`python -m studies.document` makes a table of. Stop at any time; the same command continues.
"""

import argparse
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Final

import torch
from torch import Tensor

from recollect.experiments.specs.build import build
from recollect.experiments.specs.cell import Cell, cells
from recollect.experiments.specs.configs import config_path
from recollect.experiments.specs.spec import load_spec
from recollect.reports.names import benchmark_title
from recollect.rules import GradientSum, PrincipalDirection
from studies.kept import Row, has_row, made_here, mean_entries, read_rows, write_rows
from studies.readings.studies import CIFAR, FIRST_SEED, ROOT
from studies.tables import NOT_RUN

KEPT: Final = ROOT / "results" / "readings" / "pgd.json"
STUDIES: Final = ("mnist-split", "mnist-permuted", "cifar10-split")


def er_p(study: str) -> Cell:
    """Return ER-P as the tables run it, or as the readings of CIFAR10-S do."""
    if study == CIFAR.name:
        return next(cell for cell in CIFAR.cells() if cell.method == "p")
    (cell,) = cells(load_spec(config_path(study)), methods=["er-p"])
    return cell


def look(rule: PrincipalDirection, gram: Tensor, weights: Tensor) -> dict[str, float]:
    """Take one update apart."""
    gram, weights = gram.double(), weights.double()
    plain = GradientSum()(gram)

    def product(first: Tensor, second: Tensor) -> float:
        return (first @ gram @ second).item()

    length, plain_length = (max(product(w, w), 0.0) ** 0.5 for w in (weights, plain))
    both = length * plain_length
    return {
        "is_below": float(gram[0, 0].item() <= rule.target_floor**2),
        "weight_of_g": weights[0].item(),
        "weight_of_replay": weights[1:].sum().item(),  # ER's is 1
        "length": length / plain_length if plain_length else 1.0,
        "cosine": product(weights, plain) / both if both else 1.0,
    }


def trial(study: str, cell: Cell, seed: int) -> Row:
    """Train on the stream and look at every update."""
    benchmark, learner = build(cell, seed, measure_all=True)
    rule = learner.rule
    assert isinstance(rule, PrincipalDirection)
    looks = []
    for inputs, labels in benchmark.stream:
        (update,) = learner.observe(inputs, labels).updates
        if update.gram is not None and update.weights is not None:
            looks.append(look(rule, update.gram, update.weights))
    shares = {"is_below": fmean(seen["is_below"] for seen in looks)}
    middles = {name: median(s[name] for s in looks) for name in looks[0] if name != "is_below"}
    return {
        "study": study,
        "seed": seed,
        "spec_hash": cell.spec_hash,
        **shares,
        **middles,
        **made_here(),
    }


def weights_table(rows: Sequence[Row]) -> str:
    """Return one row a benchmark, means over seeds."""
    lines = [
        "| benchmark | n | updates with norm(g) below the floor | weight of g | weight of replay "
        "| length of w, ER's is 1 | cosine to ER's w |",
        "|---|---|---|---|---|---|---|",
    ]
    for study in STUDIES:
        own, title = [row for row in rows if row["study"] == study], benchmark_title(study)
        if not own:
            lines.append(f"| {title} | 0 | {NOT_RUN} | | | | |")
            continue
        entries = " | ".join(mean_entries(own, _FORMATS))
        lines.append(f"| {title} | {len(own)} | {entries} |")
    return "\n".join(lines)


_FORMATS: Final[Mapping[str, str]] = {
    "is_below": "{:.0%}",
    "weight_of_g": "{:.2f}",
    "weight_of_replay": "{:.1f}",
    "length": "{:.1f}",
    "cosine": "{:.2f}",
}


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--study", choices=STUDIES, help="this one, not all")
    asked = options.parse_args()
    torch.set_num_threads(1)
    rows = read_rows(KEPT)
    for study in STUDIES if asked.study is None else (asked.study,):
        cell = er_p(study)
        for seed in range(FIRST_SEED, FIRST_SEED + asked.seeds):
            if has_row(rows, cell, seed):
                continue
            rows.append(trial(study, cell, seed))
            rows.sort(key=lambda row: (STUDIES.index(row["study"]), row["seed"]))
            write_rows(KEPT, rows)
            print(f"{study} seed {seed}: done", flush=True)
    print(weights_table(rows))


if __name__ == "__main__":
    main()
