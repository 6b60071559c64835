"""Does PGD need the gradients of all parameters, or do those of the last layer rank examples alike?

    python -m studies.pgd.measured [--study mnist-split] [--seeds 3] [--every 1]

ER-P with the settings of the tables, trained on all gradients. At every update (every tenth on
CIFAR10-S, on short streams) the same rule is asked again with the gradients of the last layer, by
the same model on the same examples, and the two orders of the replayed examples are compared:
Spearman's rank correlation of weights. Kept in `results/readings/measured.json`. What it does to
accuracy is another command, with records:

    recollect run mnist-split --spec configs/measured/mnist-split.toml --out results/measured
    python -m studies.pgd.measured --accuracy
"""

import argparse
import copy
from statistics import fmean, median, quantiles
from typing import Final

import torch
from scipy.stats import spearmanr
from torch import Tensor

from recollect.experiments.records.store import Store
from recollect.experiments.specs.build import build
from recollect.experiments.specs.cell import Cell
from recollect.gradients import Measurement
from recollect.learner import Learner
from recollect.network.batch import Batch
from recollect.network.network import Network
from recollect.objectives import CrossEntropy
from recollect.reports.cells import final_accuracy
from recollect.reports.statistics import paired_difference
from recollect.rules import Rule
from studies.kept import Row, has_row, made_here, read_rows, write_rows
from studies.pgd.weights import er_p
from studies.readings.studies import FIRST_SEED, ROOT

KEPT: Final = ROOT / "results" / "readings" / "measured.json"
RECORDS: Final = ROOT / "results" / "measured"
STUDIES: Final = ("mnist-split", "cifar10-split")
EVERY: Final = {"mnist-split": 1, "cifar10-split": 10}
MARGIN: Final = -0.5  # points of accuracy that the last layer may lose


class Twin:
    """The model as it was before a step, which measures its last layer alone."""

    def __init__(self, learner: Learner, transform: object) -> None:
        self._model = copy.deepcopy(learner.model)
        self._network = Network(
            self._model,
            torch.optim.SGD(self._model.parameters(), lr=0.1),
            objective=CrossEntropy(),
            transform=transform,  # type: ignore[arg-type]
            measured="head",
            products="row",
        )

    def become(self, learner: Learner) -> None:
        """Take the learner's weights and statistics."""
        self._model.load_state_dict(learner.model.state_dict())

    def weights(self, rule: Rule, batch: Batch, incoming: int) -> list[float]:
        """Return the weights that the rule gives to the last layer's gradients."""
        self._network.settle_memory_order(batch.inputs)
        measured = self._network.measure(batch, incoming=incoming).gradients
        assert isinstance(measured, Measurement)
        with torch.no_grad():
            products, squares = measured.row().tolist()
        return [*rule.row_weights(products, squares)]


def trial(study: str, cell: Cell, seed: int, every: int) -> Row:
    """Train on the stream and compare weights at some of the updates."""
    benchmark, learner = build(cell, seed)
    twin, memory = Twin(learner, benchmark.transform), learner.memory
    assert memory is not None
    found = []
    for step, (inputs, labels) in enumerate(benchmark.stream):
        looks = step % every == 0 and not memory.is_empty
        if looks:
            twin.become(learner)
            stored = memory.read(torch.arange(len(memory)))
        (update,) = learner.observe(inputs, labels).updates
        if not looks or update.weights is None or len(update.replayed_slots) < 3:
            continue
        assert isinstance(stored[0], Tensor)
        slots = update.replayed_slots
        replayed = Batch(stored[0][slots], stored[1][slots])
        both = Batch(inputs, labels).followed_by(replayed)
        of_head = twin.weights(learner.rule, both, len(labels))[1:]
        of_all = update.weights[1:].tolist()
        if len(set(of_all)) > 1 and len(set(of_head)) > 1:
            found.append(float(spearmanr(of_all, of_head).statistic))
    low, _, high = quantiles(found, n=4)
    return {
        "study": study,
        "seed": seed,
        "spec_hash": cell.spec_hash,
        "updates": len(found),
        "median": median(found),
        "low": low,
        "high": high,
        "mean": fmean(found),
        **made_here(),
    }


def accuracy_in_words() -> str:
    """Return the paired difference in accuracy, head minus all, and what follows from it."""
    records = [record for record in Store(RECORDS).records() if record.status == "done"]
    accuracies = {
        method: {r.seed: final_accuracy(r) for r in records if r.method == method}
        for method in ("er-p", "er-p-head")
    }
    summary = paired_difference(accuracies["er-p-head"], accuracies["er-p"]).summary
    if summary is None or summary.low is None or summary.high is None:
        return "fewer than two pairs of seeds are there yet"
    low, high = 100 * summary.low, 100 * summary.high
    says = "not inferior" if low > MARGIN else "not shown to be as good"
    return (
        f"head minus all: {100 * summary.mean:+.2f} points, 95 % interval [{low:+.2f}, "
        f"{high:+.2f}], n = {summary.n}: {says} (margin {MARGIN})"
    )


def as_markdown() -> str:
    """Return what both commands found, as lines of a page."""
    rows = read_rows(KEPT)
    told = []
    for study in STUDIES:
        medians = [row["median"] for row in rows if row["study"] == study]
        if medians:
            found = " and ".join(sorted({f"{value:.2f}" for value in medians}))
            name = {"mnist-split": "MNIST-S", "cifar10-split": "CIFAR10-S, short streams"}[study]
            told.append(
                f"- Rank correlation of the weights of replayed examples, median over the updates "
                f"of a stream: {found} ({name}, n = {len(medians)})."
            )
    return "\n".join([*told, f"- Accuracy on MNIST-S, {accuracy_in_words()}."])


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--study", choices=STUDIES, default="mnist-split")
    options.add_argument("--every", type=int, help="look at one update in so many")
    options.add_argument("--accuracy", action="store_true", help="compare the records")
    asked = options.parse_args()
    if asked.accuracy:
        print(accuracy_in_words())
        return
    torch.set_num_threads(1)
    rows, cell = read_rows(KEPT), er_p(asked.study)
    for seed in range(FIRST_SEED, FIRST_SEED + asked.seeds):
        if has_row(rows, cell, seed):
            continue
        rows.append(trial(asked.study, cell, seed, asked.every or EVERY[asked.study]))
        rows.sort(key=lambda row: (STUDIES.index(row["study"]), row["seed"]))
        write_rows(KEPT, rows)
        print(f"{asked.study} seed {seed}: median {rows[-1]['median']:.2f}", flush=True)


if __name__ == "__main__":
    main()
