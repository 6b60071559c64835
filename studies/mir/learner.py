"""What the learner of MIR's authors does to ER and ER-MIR, all else as in `mir-official`.

    python -m studies.mir.learner [--seeds 40]

Their code replays from the second segment on, leaves the current segment out, and admits with the
count from before a batch. On MNIST-S, each of these is put into our learner in turn; streams,
weights, network and learning rate are the same. Kept in `results/readings/mir.json`, which
`python -m studies.document` makes a table of. Stop at any time; the same command continues.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from recollect.benchmarks import Benchmark, benchmark
from recollect.learner import Learner
from recollect.memory import Memory
from recollect.metrics import AccuracyMatrix, average_accuracy, evaluate, forgetting
from recollect.reports.numbers import percent
from recollect.reports.statistics import paired_difference, summarise
from recollect.retrieval import MaximallyInterfered, Retrieval, Uniform
from recollect.rules import GradientSum
from recollect.storage import Reservoir, Storage
from studies.kept import Row, made_here, read_rows, write_rows
from studies.mir.parts import BatchReservoir, EarlierSegments, OldLogits
from studies.tables import NOT_RUN, signed, spread

KEPT: Final = Path(__file__).parents[2] / "results" / "readings" / "mir.json"
CANDIDATES: Final = {"er": None, "er-mir": 50}
TITLES: Final = {"er": "ER", "er-mir": "ER-MIR"}
OURS: Final = "ours"
THEIRS: Final = "theirs"
SCRIPT: Final = "script"
LEARNERS: Final[Mapping[str, str]] = {
    OURS: "ours",
    "earlier": "replays earlier segments only",
    THEIRS: "and admits as theirs: their learner",
    SCRIPT: "and `--compare_to_old_logits`, as their script",
}
# Their learner, step by step; only MIR compares with old logits.
STEPS: Final = (
    *(("er", learner) for learner in (OURS, "earlier", THEIRS)),
    *(("er-mir", learner) for learner in LEARNERS),
)


def build(method: str, name: str, seed: int) -> tuple[Benchmark, Learner, OldLogits | None]:
    """Return a benchmark at its beginning and one of the learners."""
    built = benchmark("mnist-split", seed=seed, protocol="mir-official")
    model, defaults = built.model(), built.defaults
    transform: Callable[[Any], Tensor] = built.transform
    candidates = CANDIDATES[method]
    old_logits = None
    retrieval: Retrieval
    if name == OURS and candidates is None:
        retrieval = Uniform(defaults.replay)
    elif name == OURS and candidates is not None:
        retrieval = MaximallyInterfered(defaults.replay, candidates)
    else:
        if name == SCRIPT:
            old_logits = OldLogits(
                defaults.capacity, built.num_classes, lambda inputs: model(transform(inputs))
            )
        retrieval = EarlierSegments(defaults.replay, candidates=candidates, old_logits=old_logits)
    storage: Storage = BatchReservoir() if name in (THEIRS, SCRIPT) else Reservoir()
    learner = Learner(
        model,
        torch.optim.SGD(model.parameters(), lr=defaults.learning_rate),
        memory=Memory(defaults.capacity),
        storage=storage,
        retrieval=retrieval,
        rule=GradientSum(),
        transform=transform,
        seed=seed,
    )
    return built, learner, old_logits


def trial(method: str, name: str, seed: int) -> Row:
    """Train on the stream; count right answers on test data after each segment."""
    built, learner, old_logits = build(method, name, seed)
    assert learner.memory is not None
    correct, total = [], []
    for step, (inputs, labels) in enumerate(built.stream, start=1):
        learner.observe(inputs, labels)
        if step not in built.stream.boundaries:
            continue
        if isinstance(learner.retrieval, EarlierSegments):
            learner.retrieval.end_segment(learner.memory)
        counts = evaluate(learner.predict, built.segments, on="test")
        correct.append([right for right, _ in counts])
        total = [num for _, num in counts]
    misread = {}
    if old_logits is not None:
        misread = {"num_read": old_logits.num_read, "num_misread": old_logits.num_misread}
    return {
        "method": method,
        "learner": name,
        "seed": seed,
        "correct": correct,
        "total": total,
        **misread,
        **made_here(),
    }


def matrix(row: Row) -> AccuracyMatrix:
    """Return the counts of a row as a matrix."""
    found = AccuracyMatrix()
    for trained_on, counts in enumerate(row["correct"]):
        for tested_on, (right, num) in enumerate(zip(counts, row["total"], strict=True)):
            found.add(trained_on=trained_on, tested_on=tested_on, correct=right, total=num)
    return found


def accuracies(rows: Sequence[Row], method: str, name: str) -> dict[int, float]:
    """Return the final average accuracy by seed."""
    own = [row for row in rows if (row["method"], row["learner"]) == (method, name)]
    return {row["seed"]: average_accuracy(matrix(row)) for row in own}


def learners_table(rows: Sequence[Row]) -> str:
    """Return one row for each learner, with ours less it."""
    lines = [
        "| method | learner | n | accuracy | forgetting | ours less this one, paired |",
        "|---|---|---|---|---|---|",
    ]
    for method, name in STEPS:
        own = [row for row in rows if (row["method"], row["learner"]) == (method, name)]
        if not own:
            lines.append(f"| {TITLES[method]} | {LEARNERS[name]} | 0 | {NOT_RUN} | | |")
            continue
        found = accuracies(rows, method, name)
        lost = summarise([forgetting(matrix(row)) for row in own])
        less = paired_difference(accuracies(rows, method, OURS), found).summary
        entries = [
            TITLES[method],
            LEARNERS[name],
            str(len(own)),
            spread(summarise(list(found.values()))),
            spread(lost),
            "" if less is None or name == OURS else signed(less),
        ]
        lines.append("| " + " | ".join(entries) + " |")
    return "\n".join(lines)


def misread_share(rows: Sequence[Row]) -> str:
    """Say how often the released script reads another slot's logits, over all runs of it."""
    shares = [row["num_misread"] / row["num_read"] for row in rows if "num_read" in row]
    if not shares:
        return f"Candidates whose logits are read from another slot: {NOT_RUN}."
    least, most = (percent(end, digits=0) for end in (min(shares), max(shares)))
    return (
        f"Candidates whose logits are read from another slot: {least} to {most} % "
        f"({len(shares)} runs)."
    )


def segments_by_argmax(labels: Tensor, num_classes: int = 10) -> list[set[int]]:
    """Return the classes of each segment when sorted labels are cut where `argmax` says."""
    ordered = labels.sort().values
    starts = [int(((ordered + shift) % num_classes).argmax()) for shift in range(num_classes)]
    cuts = [0, *sorted(starts)][::2]
    return [set(ordered[start:stop].tolist()) for start, stop in pairwise(cuts)]


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--seeds", type=int, default=40)
    asked = options.parse_args()
    torch.set_num_threads(1)
    rows = read_rows(KEPT)
    done = {(row["method"], row["learner"], row["seed"]) for row in rows}
    for seed in range(asked.seeds):
        for method, name in STEPS:
            if (method, name, seed) in done:
                continue
            rows.append(trial(method, name, seed))
            rows.sort(key=lambda row: (STEPS.index((row["method"], row["learner"])), row["seed"]))
            write_rows(KEPT, rows, is_compact=True)
            print(f"{TITLES[method]}, {LEARNERS[name]}, seed {seed}: done", flush=True)
    print(learners_table(rows))
    print(misread_share(rows))


if __name__ == "__main__":
    main()
