"""Six methods under three optimizers: the tables of docs/optimizers.md, from records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from recollect.experiments.records.record import Record
from recollect.reports.cells import CellRuns, final_accuracy, final_forgetting, flat_spec
from recollect.reports.names import method_title
from recollect.reports.numbers import percent, points
from recollect.reports.statistics import PairedDifference, corrected, paired_difference
from studies.tables import NOT_RUN, View, difference_entries, signed, spread

SGD: Final = "SGD"
# As a spec says it: name and momentum.
OPTIMIZERS: Final[Mapping[str, tuple[str, str]]] = {
    SGD: ('"sgd"', "0.0"),
    "momentum": ('"sgd"', "0.9"),
    "Adam": ('"adam"', "0.0"),
}
LONGER: Final = "SGD, longer search"
METHODS: Final = ("er", "er-w", "er-clip", "er-p", "er-mir", "er-pc-mir")
_SETTINGS: Final[Mapping[str, str]] = {
    "optimizer.lr": "lr",
    "options.replay_weight": "weight",
    "options.clip": "clip",
    "options.step_size": "step size",
}


@dataclass(frozen=True, order=True)
class Runs:
    """A method under an optimizer."""

    optimizer: str
    method: str


Pair = tuple[Runs, Runs]


def found_runs(benchmark: str, records: Sequence[Record]) -> dict[Runs, CellRuns]:
    """Return the runs on a benchmark by optimizer and method."""
    view = View(benchmark)
    return {
        Runs(optimizer, method): cell
        for optimizer in OPTIMIZERS
        for method, cell in view.cells([r for r in records if _is_under(r, optimizer)]).items()
    }


def _is_under(record: Record, optimizer: str) -> bool:
    spec = flat_spec(record)
    return (spec["optimizer.name"], spec["optimizer.momentum"]) == OPTIMIZERS[optimizer]


def comparisons(found: Mapping[Runs, CellRuns]) -> dict[Pair, PairedDifference]:
    """Return what the plan compares, p after Holm's correction over all of it."""
    wanted: list[Pair] = []
    for optimizer in OPTIMIZERS:
        wanted += [(Runs(optimizer, m), Runs(optimizer, "er")) for m in METHODS if m != "er"]
        wanted.append((Runs(optimizer, "er-p"), Runs(optimizer, "er-w")))
    for optimizer in OPTIMIZERS:
        if optimizer != SGD:
            wanted += [(Runs(optimizer, method), Runs(SGD, method)) for method in METHODS]
    return _compared(found, wanted)


def _compared(
    found: Mapping[Runs, CellRuns], wanted: Sequence[Pair]
) -> dict[Pair, PairedDifference]:
    there = [pair for pair in wanted if pair[0] in found and pair[1] in found]
    differences = [
        paired_difference(*(found[runs].by_seed(final_accuracy) for runs in pair)) for pair in there
    ]
    return dict(zip(there, corrected(differences), strict=True))


def optimizers_table(benchmark: str, records: Sequence[Record]) -> str:
    """Return one row for each optimizer and method: settings, numbers, and the gain on ER."""
    found = found_runs(benchmark, records)
    differences = comparisons(found)
    lines = [
        "| optimizer | method | settings | n | accuracy | forgetting | minus ER | p (Holm) "
        "| minus the same under SGD | p (Holm) |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for optimizer in OPTIMIZERS:
        for method in METHODS:
            runs = Runs(optimizer, method)
            cell = found.get(runs)
            if cell is None:
                entries = ["", "0", NOT_RUN, *[""] * 5]
            else:
                accuracy = cell.summary(final_accuracy)
                entries = [settings(cell), str(accuracy.n), spread(accuracy)]
                entries.append(spread(cell.summary(final_forgetting)))
                entries += difference_entries(differences.get((runs, Runs(optimizer, "er"))))
                entries += difference_entries(differences.get((runs, Runs(SGD, method))))
            lines.append("| " + " | ".join([optimizer, method_title(method), *entries]) + " |")
    return "\n".join(lines)


def settings(cell: CellRuns) -> str:
    """Say what was searched for a method, and found."""
    spec = _spec(cell)
    return ", ".join(f"{name} {spec[key]}" for key, name in _SETTINGS.items() if key in spec)


def longer_table(records: Sequence[Record], longer: Sequence[Record]) -> str:
    """Return what SGD reaches on MNIST-S with the settings of a longer search, and Adam beside."""
    found = found_runs("mnist-split", records)
    found |= {
        Runs(LONGER, runs.method): cell for runs, cell in found_runs("mnist-split", longer).items()
    }
    differences = _compared(found, [(Runs("Adam", m), Runs(LONGER, m)) for m in METHODS])
    lines = [
        "| method under SGD | settings of `configs/paper` | n | accuracy | Adam minus this "
        "| p (Holm) |",
        "|---|---|---|---|---|---|",
    ]
    for method in METHODS:
        cell = found.get(Runs(LONGER, method))
        if cell is None:
            entries = ["", "0", NOT_RUN, "", ""]
        else:
            accuracy = cell.summary(final_accuracy)
            entries = [settings(cell), str(accuracy.n), spread(accuracy)]
            entries += difference_entries(
                differences.get((Runs("Adam", method), Runs(LONGER, method)))
            )
        lines.append("| " + " | ".join([method_title(method), *entries]) + " |")
    return "\n".join(lines)


def weight_table(benchmarks: Mapping[str, str], records: Sequence[Record]) -> str:
    """Return what PGD has over a weight alone, a row for each optimizer."""
    lines = ["| benchmark | optimizer | ER-P minus ER-W | p (Holm) |", "|---|---|---|---|"]
    for benchmark, title in benchmarks.items():
        differences = comparisons(found_runs(benchmark, records))
        for optimizer in OPTIMIZERS:
            pair = (Runs(optimizer, "er-p"), Runs(optimizer, "er-w"))
            entries = difference_entries(differences.get(pair))
            entries[0] = entries[0] or NOT_RUN
            lines.append("| " + " | ".join([title, optimizer, *entries]) + " |")
    return "\n".join(lines)


def short(records: Sequence[Record]) -> str:
    """Answer what a user asks in three points, names and numbers from the records."""
    found = found_runs("mnist-split", records)
    differences = comparisons(found)

    def gain(pair: Pair) -> str:
        summary = differences[pair].summary
        assert summary is not None
        return signed(summary)

    def over_er(optimizer: str, method: str) -> str:
        return gain((Runs(optimizer, method), Runs(optimizer, "er")))

    def accuracy(method: str) -> str:
        return percent(found[Runs("Adam", method)].summary(final_accuracy).mean)

    over_sgd = {m: differences[Runs("Adam", m), Runs(SGD, m)] for m in METHODS}
    means = [d.summary.mean for d in over_sgd.values() if d.summary is not None]
    certain = [method_title(m) for m, difference in over_sgd.items() if difference.is_certain]
    rates = [float(_spec(found[Runs("Adam", m)])["optimizer.lr"]) for m in METHODS]
    pgd = Runs("Adam", "er-p"), Runs("Adam", "er-w")
    best = max(METHODS, key=lambda m: found[Runs("Adam", m)].summary(final_accuracy).mean)
    weight = _spec(found[Runs("Adam", "er-w")])["options.replay_weight"]
    return "\n".join(
        [
            f"- **Use Adam**, with a learning rate of {min(rates):.3f} to {max(rates):.3f}: on "
            f"MNIST-S the six methods lie {points(min(means)).strip('+')} to "
            f"{points(max(means)).strip('+')} points above themselves under plain SGD, "
            f"{' and '.join([', '.join(certain[:-1]), certain[-1]])} certainly.",
            f"- **Weigh replay.** A weight alone (`er-w`, weight {float(weight):g}) adds "
            f"{over_er('Adam', 'er-w')} points to `er` under Adam and "
            f"{over_er('momentum', 'er-w')} with momentum. Under plain SGD it has no clear effect "
            f"({over_er(SGD, 'er-w')}).",
            f"- **Take `er-clip` if you want more for little**: {accuracy('er-clip')} % under "
            f"Adam, where `er-w` has {accuracy('er-w')} and the best, `{best}`, {accuracy(best)}. "
            f"PGD adds {gain(pgd)} points to the weight alone, "
            f"{'certainly' if differences[pgd].is_certain else 'which is not certain'}.",
            _on_permuted(records),
        ]
    )


def _on_permuted(records: Sequence[Record]) -> str:
    """Say what of it holds on MNIST-P, where the inputs drift and all classes stay."""
    found = found_runs("mnist-permuted", records)
    differences = comparisons(found)

    def over(one: Runs, other: Runs) -> str:
        summary = differences[one, other].summary
        assert summary is not None
        return signed(summary)

    adam, sgd, er = "Adam", SGD, Runs("Adam", "er")
    added = ", ".join(f"`{m}` {over(Runs(adam, m), er)}" for m in ("er-w", "er-clip", "er-p"))
    return (
        f"- **On MNIST-P, where every class stays, keep plain `er`.** Under Adam it is as good as "
        f"under SGD ({over(er, Runs(sgd, 'er'))}), with momentum worse "
        f"({over(Runs('momentum', 'er'), Runs(sgd, 'er'))}). Minus `er` under Adam: {added}, "
        f"`er-mir` {over(Runs(adam, 'er-mir'), er)}."
    )


def _spec(cell: CellRuns) -> Mapping[str, str]:
    return flat_spec(cell.records[0])
