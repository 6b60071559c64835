"""What each reading of the paper does on MNIST-S: the figures of docs/paper-notes.md.

Validation accuracy (examples held out from training data; the test set is not read), paired over
seeds with the baseline of its block. One run takes about a second.

    python -m perf.paper_notes --seeds 30 --workers 2
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from math import sqrt
from statistics import mean, stdev

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: its threads spin on each other

import torch
from scipy.stats import t as student

import recollect
from recollect.benchmarks import Benchmark
from recollect.errors import NonFiniteError
from recollect.metrics import AccuracyMatrix, average_accuracy, evaluate, forgetting


@dataclass(frozen=True, eq=False)
class Variant:
    """One reading: which note it belongs to, and what to run."""

    note: str
    label: str
    method: str
    options: dict[str, object] = field(default_factory=dict)


def crs(**options: object) -> dict[str, object]:
    return {"margins": "never", "margin_weight": 0.0, **options}


VARIANTS = (
    Variant("", "ER", "er"),
    Variant("P2", "ER-P, floor on |w| 3", "er-p"),
    Variant("P2", "ER-P, floor on |w| 1", "er-p", {"target_floor": 1.0}),
    Variant("P2", "ER-P, floor on |w| 0.1", "er-p", {"target_floor": 0.1}),
    Variant("P2", "ER-P, no floor to speak of (1e-6)", "er-p", {"target_floor": 1e-6}),
    Variant("P2", "ER-P, 10 proximal steps", "er-p", {"steps": 10}),
    Variant("P2", "ER-P, 2 groups of 5", "er-p", {"groups": 2}),
    Variant("P6", "ER-C, s1, EX alone", "er-c", crs()),
    Variant("P6", "ER-C, s1, EX alone, age + 100", "er-c", crs(age_offset=100.0)),
    Variant("P6", "ER-C, s2, EX alone", "er-c", crs(pick="proportional")),
    Variant("P5", "ER-C, s1, MI at insertion, c 0.1", "er-c", {"margins": "insertion"}),
    Variant("P5", "ER-C, s1, MI at replay, c 0.1", "er-c", {"margins": "replay"}),
    Variant("P5", "ER-C, s1, MI at both, c 0.1", "er-c", {"margins": "both"}),
    Variant("P5", "ER-C, s1, MI of all, c 0.1", "er-c", {"margins": "all"}),
    Variant("P5", "ER-C, s1, MI at insertion, c 1", "er-c", {"margin_weight": 1.0}),
    Variant("P4", "ER-C, s2 clamped, MI at insertion, c 0.1", "er-c", {"pick": "proportional"}),
    Variant(
        "P4",
        "ER-C, s2 shifted, MI at insertion, c 0.1",
        "er-c",
        {"pick": "proportional", "negative": "shift"},
    ),
    Variant("P7", "ER-C, s1 within class, MI at insertion", "er-c", {"within_class": True}),
    Variant(
        "P7",
        "ER-C, s2 within class, MI at insertion",
        "er-c",
        {"within_class": True, "pick": "proportional"},
    ),
    Variant("P12", "ER, separate passes (no BatchNorm here)", "er", {"passes": "separate"}),
)


def run(variant: Variant, seed: int) -> tuple[float, float, list[int]]:
    """Return validation accuracy, forgetting and the final class counts of the memory."""
    torch.set_num_threads(1)
    bench: Benchmark = recollect.benchmark("mnist-split", seed=seed)
    model = bench.model()
    learner = recollect.method(
        variant.method,
        model,
        torch.optim.SGD(model.parameters(), lr=bench.defaults.learning_rate),
        capacity=bench.defaults.capacity,
        replay=bench.defaults.replay,
        seed=seed,
        transform=bench.transform,
        **variant.options,
    )
    matrix = AccuracyMatrix()
    stream = bench.stream
    try:
        for inputs, labels in stream:
            learner.observe(inputs, labels)
            if stream.batches_given in stream.boundaries:
                after = stream.boundaries.index(stream.batches_given)
                counts = evaluate(learner.predict, bench.segments, on="validation")
                for tested, (correct, total) in enumerate(counts):
                    matrix.add(trained_on=after, tested_on=tested, correct=correct, total=total)
    except NonFiniteError:
        return float("nan"), float("nan"), []
    assert learner.memory is not None
    held = list(learner.memory.counts_by_class().values())
    return 100 * average_accuracy(matrix), 100 * forgetting(matrix), held


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", type=int, default=30)
    options.add_argument("--workers", type=int, default=2)
    chosen = options.parse_args()
    cells = [(variant, seed) for seed in range(chosen.seeds) for variant in VARIANTS]
    with ProcessPoolExecutor(chosen.workers) as pool:
        found = list(pool.map(run, *zip(*cells, strict=True)))
    by_variant: dict[str, list[tuple[float, float, list[int]]]] = {}
    for (variant, _), result in zip(cells, found, strict=True):
        by_variant.setdefault(variant.label, []).append(result)
    baseline = [accuracy for accuracy, _, _ in by_variant[VARIANTS[0].label]]
    print(f"n = {chosen.seeds} paired seeds; ± is the standard deviation; [..] a 95 % interval\n")
    print("| note | reading | accuracy | forgetting | minus ER, paired | slots by class |")
    print("|---|---|---|---|---|---|")
    for variant in VARIANTS:
        print(row(variant, by_variant[variant.label], baseline))


def row(
    variant: Variant, results: list[tuple[float, float, list[int]]], baseline: list[float]
) -> str:
    accuracies = [accuracy for accuracy, _, _ in results]
    diverged = sum(accuracy != accuracy for accuracy in accuracies)
    if diverged:
        return f"| {variant.note} | {variant.label} | {diverged} of {len(results)} diverge | | | |"
    gains = [a - b for a, b in zip(accuracies, baseline, strict=True)]
    half = float(student.ppf(0.975, len(gains) - 1)) * stdev(gains) / sqrt(len(gains))
    held = [round(mean(counts)) for counts in zip(*(h for _, _, h in results), strict=True)]
    return (
        f"| {variant.note} | {variant.label} | {mean(accuracies):.1f} ± {stdev(accuracies):.1f} "
        f"| {mean(f for _, f, _ in results):.1f} "
        f"| {mean(gains):+.1f} [{mean(gains) - half:+.1f}, {mean(gains) + half:+.1f}] "
        f"| {' '.join(map(str, held))} |"
    )


if __name__ == "__main__":
    main()
