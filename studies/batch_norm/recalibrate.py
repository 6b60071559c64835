"""Are a network's weights to blame for what it forgets, or its BatchNorm statistics?

    python -m studies.batch_norm.recalibrate [--seeds 3]

ER on short streams of CIFAR10-S, with a joint pass and with separate ones, as in
`studies.readings cifar10-split`. At the end the network is tested on validation data twice: with
the running statistics it was trained with, and with statistics taken anew from its memory (batches
of 20, their plain mean), weights untouched. Kept in `results/readings/recalibration.json`, which
`python -m studies.document` makes a table of. Stop at any time; the same command continues.
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from recollect.experiments.specs.build import build
from recollect.experiments.specs.cell import Cell
from recollect.metrics import evaluate
from recollect.reports.statistics import paired_difference, summarise
from studies.kept import Row, has_row, made_here, read_rows, write_rows
from studies.readings.studies import CIFAR, FIRST_SEED, ROOT
from studies.tables import NOT_RUN, signed, spread

KEPT: Final = ROOT / "results" / "readings" / "recalibration.json"
READINGS: Final = ("er", "er-separate")
_BATCH: Final = 20  # incoming and replayed examples of a step


def recalibrate(model: nn.Module, batches: Iterable[Tensor]) -> None:
    """Take the running statistics of every BatchNorm anew: the mean over these batches."""
    norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    momenta, was_training = [norm.momentum for norm in norms], model.training
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain mean instead of an exponential one
    model.train()
    with torch.no_grad():
        for batch in batches:
            model(batch)
    model.train(was_training)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum


def trial(cell: Cell, seed: int) -> Row:
    """Train on the stream, then test with both statistics."""
    benchmark, learner = build(cell, seed)
    for inputs, labels in benchmark.stream:
        learner.observe(inputs, labels)

    def tested() -> list[tuple[int, int]]:
        return evaluate(learner.predict, benchmark.segments, on="validation")

    before = tested()
    memory = learner.memory
    assert memory is not None
    order = torch.randperm(len(memory), generator=torch.Generator().manual_seed(seed))
    prepare: Callable[[Any], Tensor] = benchmark.transform
    stored = [prepare(memory.read(slots)[0]) for slots in torch.split(order, _BATCH)]
    recalibrate(learner.model, stored)
    return {
        "reading": cell.method,
        "seed": seed,
        "spec_hash": cell.spec_hash,
        "total": [total for _, total in before],
        "correct": [correct for correct, _ in before],
        "recalibrated": [correct for correct, _ in tested()],
        **made_here(),
    }


def recalibration_table(rows: Sequence[Row]) -> str:
    """Return one row a way of passing: both accuracies, and those of the last segment."""
    lines = [
        "| ER | n | as trained | statistics from memory | difference "
        "| last segment, as trained | statistics from memory |",
        "|---|---|---|---|---|---|---|",
    ]
    for reading, label in zip(READINGS, ("joint pass", "separate passes"), strict=True):
        own = {row["seed"]: row for row in rows if row["reading"] == reading}
        if not own:
            lines.append(f"| {label} | 0 | {NOT_RUN} | | | | |")
            continue
        before, after = (
            {seed: _accuracy(row, which) for seed, row in own.items()}
            for which in ("correct", "recalibrated")
        )
        gain = paired_difference(after, before).summary
        entries = [
            label,
            str(len(own)),
            spread(summarise(list(before.values()))),
            spread(summarise(list(after.values()))),
            "" if gain is None else signed(gain),
            *(
                spread(summarise([row[which][-1] / row["total"][-1] for row in own.values()]))
                for which in ("correct", "recalibrated")
            ),
        ]
        lines.append("| " + " | ".join(entries) + " |")
    return "\n".join(lines)


def _accuracy(row: Row, which: str) -> float:
    return fmean(c / t for c, t in zip(row[which], row["total"], strict=True))


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--seeds", type=int, default=3)
    seeds = range(FIRST_SEED, FIRST_SEED + options.parse_args().seeds)
    torch.set_num_threads(1)
    cells = {cell.method: cell for cell in CIFAR.cells()}
    rows = read_rows(KEPT)
    for seed in seeds:
        for reading in READINGS:
            cell = cells[reading]
            if has_row(rows, cell, seed):
                continue
            rows.append(trial(cell, seed))
            rows.sort(key=lambda row: (row["reading"], row["seed"]))
            write_rows(KEPT, rows)
            print(f"{reading} seed {seed}: done", flush=True)
    print(recalibration_table(rows))


if __name__ == "__main__":
    main()
