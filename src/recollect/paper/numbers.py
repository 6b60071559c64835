"""The paper's Tables 1-4 and Figures 1-4 as literal data: its numbers, and what it claims of them.

Source: Chen and Lin, the paper this library implements, sections 4.4 to 4.6. Numbers are percent.
"We run 10 times to get each result"; the paper does not say what its +/- is (note P10). The bars of
Figures 1-4 carry no printed numbers: those that a table repeats are given, the others are None.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from recollect.reports.names import benchmark_title, method_title
from recollect.reports.sizes import Reported

PAPER_SEEDS: Final = 10

Metric = Literal["accuracy", "forgetting"]
MetricTitle: Final[Mapping[Metric, str]] = {
    "accuracy": "accuracy, % ↑",
    "forgetting": "forgetting, % ↓",
}


@dataclass(frozen=True)
class PaperCell:
    """One place of a table, or one bar of a figure.

    Attributes:
        metric: Which number.
        benchmark: Name of the benchmark.
        method: Name of the method.
        capacity: Slots of the memory, 0 without one.
        reported: What the paper prints there, None if nothing.
        row: Heading of its row.
        column: Heading of its column.
    """

    metric: Metric
    benchmark: str
    method: str
    capacity: int
    reported: Reported | None
    row: str
    column: str


@dataclass(frozen=True)
class Claim:
    """That one method is better than another somewhere.

    Attributes:
        metric: In which number.
        benchmark: On which benchmark.
        capacity: With how many slots.
        better: The method said to be better.
        worse: The method it is compared with.
        is_about_size: Whether the exhibit compares memory sizes, so that the size must be said.
    """

    metric: Metric
    benchmark: str
    capacity: int
    better: str
    worse: str
    is_about_size: bool = False


@dataclass(frozen=True)
class Exhibit:
    """A table or figure of the paper.

    Attributes:
        name: Such as `"table1"`.
        title: Its caption, in short.
        cells: In reading order.
        claims: The orderings that the paper's text states about it.
        remarks: What a reader should know about the paper's side.
    """

    name: str
    title: str
    cells: tuple[PaperCell, ...]
    claims: tuple[Claim, ...]
    remarks: tuple[str, ...] = ()

    def reported(self, claim: Claim) -> tuple[Reported, Reported] | None:
        """Return what it prints for the better and the worse method of a claim, if it does both."""
        printed = {
            cell.method: cell.reported
            for cell in self.cells
            if (cell.metric, cell.benchmark, cell.capacity)
            == (claim.metric, claim.benchmark, claim.capacity)
        }
        better, worse = printed.get(claim.better), printed.get(claim.worse)
        return None if better is None or worse is None else (better, worse)


BATCH_NORM: Final = ("cifar10-split", "mini-imagenet-split")
CAPACITY: Final[Mapping[str, int]] = {
    "mnist-split": 500,
    "mnist-permuted": 500,
    "cifar10-split": 500,
    "mini-imagenet-split": 10_000,
}
_ABLATION: Final = ("er", "er-p", "er-c", "er-pc")
_SIZES: Final = (1000, 500, 250, 100)

# Table 1 and Table 2: ER, ER-P, ER-C, ER-PC.
_TABLE_1: Final[Mapping[str, tuple[tuple[float, float], ...]]] = {
    "mnist-split": ((79.8, 3.2), (82.4, 2.1), (81.5, 2.1), (84.0, 2.3)),
    "mnist-permuted": ((79.1, 0.7), (80.9, 0.3), (79.9, 0.5), (81.7, 0.6)),
    "cifar10-split": ((30.7, 2.0), (36.1, 1.8), (38.5, 1.1), (40.0, 2.1)),
    "mini-imagenet-split": ((23.0, 1.2), (25.5, 0.6), (25.2, 0.8), (25.8, 1.0)),
}
_TABLE_2: Final[Mapping[str, tuple[tuple[float, float], ...]]] = {
    "mnist-split": ((19.2, 4.0), (13.2, 3.1), (17.3, 3.2), (9.6, 1.9)),
    "mnist-permuted": ((4.3, 0.5), (2.6, 0.5), (4.0, 0.6), (2.4, 0.4)),
    "cifar10-split": ((63.3, 2.7), (56.6, 3.7), (49.4, 1.7), (49.7, 3.3)),
    "mini-imagenet-split": ((32.1, 2.0), (25.7, 1.4), (28.5, 1.1), (25.7, 1.1)),
}
# Table 3 and Table 4: memory of 1000, 500, 250, 100.
_TABLE_3: Final[Mapping[tuple[str, str], tuple[tuple[float, float], ...]]] = {
    ("mnist-permuted", "er-mir"): ((82.7, 0.4), (80.5, 0.5), (77.5, 0.9), (73.6, 1.0)),
    ("mnist-permuted", "er-pc-mir"): ((84.4, 0.4), (82.9, 0.3), (79.6, 0.6), (76.1, 0.4)),
    ("cifar10-split", "er-mir"): ((43.5, 1.7), (33.1, 1.1), (27.1, 2.3), (22.0, 2.2)),
    ("cifar10-split", "er-pc-mir"): ((48.9, 2.5), (41.0, 1.8), (33.7, 1.9), (26.6, 3.0)),
}
_TABLE_4: Final[Mapping[tuple[str, str], tuple[tuple[float, float], ...]]] = {
    ("mnist-permuted", "er-mir"): ((2.3, 0.4), (3.9, 0.3), (6.0, 0.6), (8.8, 0.9)),
    ("mnist-permuted", "er-pc-mir"): ((1.2, 0.3), (1.9, 0.3), (4.4, 0.5), (7.0, 0.7)),
    ("cifar10-split", "er-mir"): ((46.4, 5.1), (64.6, 1.6), (72.2, 4.3), (77.0, 2.5)),
    ("cifar10-split", "er-pc-mir"): ((36.0, 4.8), (49.2, 3.4), (54.6, 3.8), (69.1, 5.3)),
}
# "Both PGD and CRS can improve the performance of ER on all four datasets"; "ER-PC is the best".
_ABLATION_ORDER: Final = (
    ("er-p", "er"),
    ("er-c", "er"),
    ("er-pc", "er"),
    ("er-pc", "er-p"),
    ("er-pc", "er-c"),
)
# "On MNIST-S and MNIST-P PGD contributes more than CRS. The situation reverses on CIFAR10-S."
_CONTRIBUTION: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "mnist-split": (("er-p", "er-c"),),
    "mnist-permuted": (("er-p", "er-c"),),
    "cifar10-split": (("er-c", "er-p"),),
    "mini-imagenet-split": (),
}
# "Our method achieves the best accuracy" and "forgets least": over each baseline. ER-MIR is "the
# best baseline" in accuracy but on MINI-S, where ER is; on CIFAR10-S, ER forgets least of them.
_FIGURES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "figure1": ("mnist-split", ("van", "er", "er-mir", "gss", "er-pc-mir")),
    "figure2": ("mnist-permuted", ("van", "er", "er-mir", "gss", "er-pc-mir")),
    "figure3": ("cifar10-split", ("van", "er", "er-mir", "gss", "er-pc-mir")),
    "figure4": ("mini-imagenet-split", ("van", "er", "er-mir", "gss", "er-pc-mir")),
}


def _ablation(
    name: str,
    metric: Metric,
    title: str,
    numbers: Mapping[str, tuple[tuple[float, float], ...]],
    remarks: tuple[str, ...] = (),
) -> Exhibit:
    cells = tuple(
        PaperCell(
            metric,
            benchmark,
            method,
            CAPACITY[benchmark],
            Reported(*number),
            row=benchmark_title(benchmark),
            column=method_title(method),
        )
        for benchmark, row in numbers.items()
        for method, number in zip(_ABLATION, row, strict=True)
    )
    claims = tuple(
        Claim(metric, benchmark, CAPACITY[benchmark], better, worse)
        for benchmark in numbers
        for better, worse in (*_ABLATION_ORDER, *_CONTRIBUTION[benchmark])
        if (metric, benchmark, better, worse) not in _NOT_CLAIMED
    )
    return Exhibit(name, title, cells, claims, remarks)


# Table 2 prints the same 25.7 for ER-P and ER-PC on MINI-S, and less forgetting for ER-C than for
# ER-PC on CIFAR10-S, as the text says.
_NOT_CLAIMED: Final = {
    ("forgetting", "mini-imagenet-split", "er-pc", "er-p"),
    ("forgetting", "cifar10-split", "er-pc", "er-c"),
}


def _memory_sizes(
    name: str,
    metric: Metric,
    title: str,
    numbers: Mapping[tuple[str, str], tuple[tuple[float, float], ...]],
) -> Exhibit:
    cells = tuple(
        PaperCell(
            metric,
            benchmark,
            method,
            capacity,
            Reported(*number),
            row=f"{benchmark_title(benchmark)}, {method_title(method)}",
            column=str(capacity),
        )
        for (benchmark, method), row in numbers.items()
        for capacity, number in zip(_SIZES, row, strict=True)
    )
    claims = tuple(
        Claim(metric, benchmark, capacity, "er-pc-mir", "er-mir", is_about_size=True)
        for benchmark in ("mnist-permuted", "cifar10-split")
        for capacity in _SIZES
    )
    return Exhibit(name, title, cells, claims)


def _figure(name: str) -> Exhibit:
    benchmark, methods = _FIGURES[name]
    cells = tuple(
        PaperCell(
            metric,
            benchmark,
            method,
            0 if method == "van" else CAPACITY[benchmark],
            _known_bar(metric, benchmark, method),
            row=MetricTitle[metric],
            column=method_title(method),
        )
        for metric in MetricTitle
        for method in methods
    )
    # GSS on MINI-S is ours alone: the paper left it out for its training time.
    baselines = [m for m in methods[:-1] if (benchmark, m) != ("mini-imagenet-split", "gss")]
    orders: list[tuple[Metric, str, str]] = [
        (metric, "er-pc-mir", baseline) for metric in MetricTitle for baseline in baselines
    ]
    best = "er" if benchmark == "mini-imagenet-split" else "er-mir"
    orders += [("accuracy", best, other) for other in baselines if other != best]
    if benchmark == "cifar10-split":
        orders.append(("forgetting", "er", "er-mir"))
    claims = tuple(
        Claim(metric, benchmark, CAPACITY[benchmark], better, worse)
        for metric, better, worse in orders
    )
    remarks = ["The paper draws bars without numbers; those that Tables 1-4 repeat are given."]
    if benchmark == "mini-imagenet-split":
        remarks.append("The paper leaves GSS out here because its training time was unacceptable.")
    title = f"Performances on {benchmark_title(benchmark)}"
    return Exhibit(name, title, cells, claims, tuple(remarks))


def _known_bar(metric: Metric, benchmark: str, method: str) -> Reported | None:
    ablation = _TABLE_1 if metric == "accuracy" else _TABLE_2
    sizes = _TABLE_3 if metric == "accuracy" else _TABLE_4
    if method == "er":
        return Reported(*ablation[benchmark][0])
    if (benchmark, method) in sizes:
        return Reported(*sizes[benchmark, method][_SIZES.index(500)])
    return None


EXHIBITS: Final[Mapping[str, Exhibit]] = {
    "table1": _ablation("table1", "accuracy", "Average accuracy, ablation study", _TABLE_1),
    "table2": _ablation(
        "table2",
        "forgetting",
        "Forgetting, ablation study",
        _TABLE_2,
        ("The paper prints ER-C below ER-PC on CIFAR10-S and a tie of ER-P and ER-PC on MINI-S.",),
    ),
    "table3": _memory_sizes("table3", "accuracy", "Average accuracy by memory size", _TABLE_3),
    "table4": _memory_sizes("table4", "forgetting", "Forgetting by memory size", _TABLE_4),
    **{name: _figure(name) for name in _FIGURES},
}
