"""What the front page says in numbers: which method, what of the paper holds, other libraries."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from recollect.experiments.records.record import Record
from recollect.reports.cells import CellRuns, final_accuracy
from recollect.reports.numbers import percent, points
from recollect.reports.statistics import Summary, paired_difference
from studies.tables import View

_SPLIT, _PERMUTED, _CIFAR = (
    View("mnist-split"),
    View("mnist-permuted"),
    View("cifar10-split", "joint"),
)


def choice(records: Sequence[Record]) -> str:
    """Recommend a method in three lines."""
    split, permuted, cifar = (view.cells(records) for view in (_SPLIT, _PERMUTED, _CIFAR))
    best, cheap = "er-clip-mir", "er-clip"
    return "\n".join(
        [
            f"- **Highest accuracy, without BatchNorm: `{best}`.** On MNIST-S {_end(split[best])}, "
            f"where `er` reaches {_end(split['er'])} ({_seeds(split[best])} seeds), for "
            f"{_cost(split, best)} times the computing time.",
            f"- **A cheap step: `{cheap}`**, {_end(split[cheap])} for {_cost(split, cheap)} times "
            f"the time. On MNIST-P it does not beat `er` ({_gain(permuted, cheap, 'er')} points).",
            f"- **With BatchNorm: `er`.** No method has certainly beaten a tuned `er` on CIFAR10-S "
            f"({_seeds(cifar['er'])} seeds); read [this page](docs/batch-norm.md) first.",
        ]
    )


def findings(records: Sequence[Record], lineage: Sequence[Record]) -> str:
    """Say what became of the paper's three proposals."""
    split, permuted = (view.cells(records) for view in (_SPLIT, _PERMUTED))
    old = View("cifar10-split", "separate").cells(lineage)
    mnist = {"MNIST-S": split, "MNIST-P": permuted}
    return "\n".join(
        [
            f"- **PGD {_verdict(mnist, 'er-p', 'er')}**: `er-p` minus a tuned `er` is "
            f"{_gain(split, 'er-p', 'er')} points and {_gain(permuted, 'er-p', 'er')}. "
            "[Clipping does as much](docs/pgd.md), without a direction.",
            f"- **CRS {_verdict({'MNIST-S': split, 'CIFAR10-S': old}, 'er-c', 'er')}**: `er-c` "
            f"minus `er` is {_gain(split, 'er-c', 'er')} and {_gain(old, 'er-c', 'er')}, the "
            f"latter at the learning rate of MIR's code ({_seeds(old['er-c'])} seeds).",
            f"- **Both, added to MIR: {_verdict(mnist, 'er-pc-mir', 'er-mir')}**: `er-pc-mir` "
            f"minus `er-mir` is {_gain(split, 'er-pc-mir', 'er-mir')}, "
            "[hanging on the processor](docs/appendix/rounding.md), "
            "and "
            f"{_gain(permuted, 'er-pc-mir', 'er-mir')}.",
        ]
    )


def peers(folder: Path) -> str:
    """Tabulate what `make perf` last measured of other libraries: their time over ours."""
    measured = json.loads(max(folder.glob("*.json")).read_text(encoding="utf-8"))
    versions = [measured["versions"][name] for name in ("avalanche-lib", "capymoa")]
    rows = [
        f"| | recollect | Avalanche {versions[0]} | CapyMOA {versions[1]} | Mammoth |",
        "|---|---|---|---|---|",
        *_OTHERWISE,
    ]
    for label, what, shape in _TIMED:
        ratios = measured["sections"][f"peers-{shape}"]["answer"]["ratios"]
        found = [_slower(ratios, what, library) for library in ("Avalanche", "CapyMOA")]
        rows.append("| " + " | ".join([f"time of {label}", "1", *found, "\N{EN DASH}"]) + " |")
    return "\n".join(rows)


_TIMED: Final = (
    ("ER, MLP", "ER", "mlp"),
    ("MIR, MLP", "ER-MIR, separate passes", "mlp"),
    ("ER, ResNet", "ER", "cifar"),
)
# From their documentation as last read.
_OTHERWISE: Final = (
    "| scope | replay on streams | continual learning | data streams | 70 methods |",
    "| MIR | yes | yes | no | no |",
    "| PGD, CRS | yes | no | no | no |",
)


def _slower(ratios: Sequence[Mapping[str, Any]], what: str, library: str) -> str:
    """Return how many times our time a library takes: one number per length of the stream."""
    found = sorted(
        1 / ratio["median"]
        for ratio in ratios
        if ratio["what"] == what
        and ratio["than"].startswith(library)
        and "with its metrics" not in ratio["than"]
    )
    if not found:
        return "\N{EN DASH}"
    low, high = f"{found[0]:.1f}", f"{found[-1]:.1f}"
    return low if low == high else f"{low} to {high}"


def _verdict(places: Mapping[str, Mapping[str, CellRuns]], method: str, baseline: str) -> str:
    """Say where a method is certainly above its baseline, below it, or neither."""
    words: dict[str, list[str]] = {}
    for place, cells in places.items():
        summary = _difference(cells, method, baseline)
        if summary is None or summary.low is None or summary.high is None:
            word = "is open"
        elif summary.low > 0:
            word = "helps"
        else:
            word = "hurts" if summary.high < 0 else "has no clear effect"
        words.setdefault(word, []).append(place)
    return " and ".join(f"{word} on {' and '.join(found)}" for word, found in words.items())


def _seeds(cell: CellRuns) -> int:
    return len(cell.seeds)


def _end(cell: CellRuns) -> str:
    return f"{percent(cell.summary(final_accuracy).mean)} %"


def _difference(cells: Mapping[str, CellRuns], method: str, baseline: str) -> Summary | None:
    one, other = (cells[name].by_seed(final_accuracy) for name in (method, baseline))
    return paired_difference(one, other).summary


def _gain(cells: Mapping[str, CellRuns], method: str, baseline: str) -> str:
    summary = _difference(cells, method, baseline)
    if summary is None or summary.low is None or summary.high is None:
        return "an unknown number of"
    return f"{points(summary.mean)} [{points(summary.low)}, {points(summary.high)}]"


def _cost(cells: Mapping[str, CellRuns], method: str) -> str:
    """Return a method's computing time over ER's, on the kind of processor that most of it had."""
    cpus = [run.machine["cpu"] for run in cells[method].records]
    cpu = max(sorted(set(cpus)), key=cpus.count)
    times = [
        median(run.cpu_seconds for run in cells[name].records if run.machine["cpu"] == cpu)
        for name in (method, "er")
    ]
    return f"{times[0] / times[1]:.1f}"
