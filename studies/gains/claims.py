"""What the paper states, and what the records say about it, benchmark by benchmark."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from recollect.paper.formats import MARKS
from recollect.paper.numbers import PAPER_SEEDS
from recollect.paper.tables import Comparison, JudgedClaim, Variant
from recollect.reports.numbers import points
from studies.tables import pair_title

Where = tuple[str, Variant]
HELD: Final = "**held**"
REVERSED: Final = "**not held**, reversed"
SMALLER: Final = "**not held**, smaller"
UNDECIDED: Final = "not yet decided"

PLACES: Final[Mapping[Where, str]] = {
    ("mnist-split", "any"): "MNIST-S",
    ("mnist-permuted", "any"): "MNIST-P",
    ("cifar10-split", "joint"): "CIFAR10-S, joint pass",
    ("cifar10-split", "separate"): "CIFAR10-S, separate passes",
    ("mini-imagenet-split", "joint"): "MINI-S, joint pass",
    ("mini-imagenet-split", "separate"): "MINI-S, separate passes",
}


# Columns of the table at a glance: place, whether at MIR's rate, heading.
GLANCES: Final[Sequence[tuple[Where, bool, str]]] = (
    (("mnist-split", "any"), False, "MNIST-S"),
    (("mnist-split", "any"), True, "at MIR's rate"),
    (("mnist-permuted", "any"), False, "MNIST-P"),
    (("mnist-permuted", "any"), True, "at MIR's rate"),
    (("cifar10-split", "joint"), False, "CIFAR10-S, joint pass, three methods searched"),
    (("cifar10-split", "separate"), True, "at MIR's rate, separate passes"),
    (("mini-imagenet-split", "joint"), False, "MINI-S, joint pass, not searched"),
)


@dataclass(frozen=True)
class Statement:
    """A sentence of the paper and the ordering claims that it consists of.

    Attributes:
        text: The sentence, in short.
        source: Where the paper says it.
        exhibits: Whose claims.
        is_part: Which of them.
    """

    text: str
    source: str
    exhibits: tuple[str, ...]
    is_part: Callable[[JudgedClaim], bool]


def _pair(better: str, worse: str | None = None) -> Callable[[JudgedClaim], bool]:
    def matches(judged: JudgedClaim) -> bool:
        claim = judged.claim
        return claim.better == better and worse in (None, claim.worse)

    return matches


def _contribution(judged: JudgedClaim) -> bool:
    return {judged.claim.better, judged.claim.worse} == {"er-p", "er-c"}


def _accuracy(part: Callable[[JudgedClaim], bool]) -> Callable[[JudgedClaim], bool]:
    return lambda judged: judged.claim.metric == "accuracy" and part(judged)


def _forgetting(part: Callable[[JudgedClaim], bool]) -> Callable[[JudgedClaim], bool]:
    return lambda judged: judged.claim.metric == "forgetting" and part(judged)


_FIGURES: Final = ("figure1", "figure2", "figure3", "figure4")

STATEMENTS: Final = (
    Statement("PGD improves the accuracy of ER", "abstract, 3.3", ("table1",), _pair("er-p", "er")),
    Statement("PGD reduces the forgetting of ER", "3.3", ("table2",), _pair("er-p", "er")),
    Statement("CRS improves the accuracy of ER", "abstract, 3.3", ("table1",), _pair("er-c", "er")),
    Statement("CRS reduces the forgetting of ER", "3.3", ("table2",), _pair("er-c", "er")),
    Statement(
        "ER-PC has the best accuracy of the four: above ER, ER-P and ER-C",
        "3.3",
        ("table1",),
        _pair("er-pc"),
    ),
    Statement(
        "ER-PC forgets least of the four (but for ER-C on CIFAR10-S)",
        "3.3",
        ("table2",),
        _pair("er-pc"),
    ),
    Statement(
        "PGD contributes more accuracy than CRS on MNIST, CRS more than PGD on CIFAR10-S",
        "3.3",
        ("table1",),
        _contribution,
    ),
    Statement(
        "The comparative relations are the same in forgetting", "3.3", ("table2",), _contribution
    ),
    Statement(
        "ER-PC-MIR is more accurate than ER-MIR",
        "abstract, 3.4",
        _FIGURES,
        _accuracy(_pair("er-pc-mir", "er-mir")),
    ),
    Statement(
        "ER-PC-MIR forgets less than ER-MIR",
        "abstract, 3.4",
        _FIGURES,
        _forgetting(_pair("er-pc-mir", "er-mir")),
    ),
    Statement(
        "ER-PC-MIR has the best accuracy: above VAN, ER, GSS and ER-MIR",
        "1, 3.4",
        _FIGURES,
        _accuracy(_pair("er-pc-mir")),
    ),
    Statement(
        "ER-PC-MIR forgets least: below VAN, ER, GSS and ER-MIR",
        "1, 3.4",
        _FIGURES,
        _forgetting(_pair("er-pc-mir")),
    ),
    Statement(
        "ER-MIR is the best baseline in accuracy (on MINI-S: ER)",
        "3.4",
        _FIGURES,
        _accuracy(lambda judged: judged.claim.better in ("er-mir", "er")),
    ),
    Statement(
        "ER forgets least of the baselines on CIFAR10-S (below ER-MIR)",
        "3.4",
        ("figure3",),
        _forgetting(_pair("er", "er-mir")),
    ),
    Statement(
        "ER-PC-MIR is more accurate than ER-MIR with 1000, 500, 250 and 100 slots",
        "3.4",
        ("table3",),
        _pair("er-pc-mir"),
    ),
    Statement(
        "ER-PC-MIR forgets less than ER-MIR with 1000, 500, 250 and 100 slots",
        "3.4",
        ("table4",),
        _pair("er-pc-mir"),
    ),
)


def verdict(parts: Sequence[JudgedClaim]) -> str:
    """Say what follows for a statement from the claims it consists of.

    *held*: every one holds at 5 % after Holm's correction. *not held*: over at least as many seeds
    as the paper ran, one of them is as certainly the other way round (*reversed*), or is not
    certainly there and as certainly smaller than in the paper (*smaller*). *not yet decided*:
    anything else.
    """
    enough = {part.verdict for part in parts if _num_seeds(part) >= PAPER_SEEDS}
    if "does not hold" in enough:
        return REVERSED
    if "less than the paper reports" in enough:
        return SMALLER
    if parts and all(part.verdict == "holds" for part in parts):
        return HELD
    return UNDECIDED


def _num_seeds(part: JudgedClaim) -> int:
    return 0 if part.difference.summary is None else part.difference.summary.n


def glance_table(
    tuned: Sequence[Comparison],
    lineage: Sequence[Comparison],
    statements: Sequence[Statement] = STATEMENTS,
) -> str:
    """Return one row a statement, one column a place: the verdicts and what they rest on."""
    headings = ["the paper says", *(heading for _, _, heading in GLANCES)]
    lines = ["| " + " | ".join(headings) + " |", "|---" * len(headings) + "|"]
    for statement in statements:
        entries = [statement.text]
        for where, is_lineage, _ in GLANCES:
            parts = _parts(statement, lineage if is_lineage else tuned)
            entries.append(_glance([p for p in parts if (p.claim.benchmark, p.variant) == where]))
        lines.append("| " + " | ".join(entries) + " |")
    return "\n".join(lines)


def _glance(parts: Sequence[JudgedClaim]) -> str:
    seeds = [_num_seeds(part) for part in parts if _num_seeds(part)]
    if not seeds:
        return "no runs" if parts else ""
    told = "open" if verdict(parts) == UNDECIDED else verdict(parts)
    if len(parts) == 1 and parts[0].difference.summary is not None:
        told += f": {points(parts[0].difference.summary.mean)}"
    return f"{told} (n={min(seeds)})" if min(seeds) == max(seeds) else f"{told} (n≥{min(seeds)})"


def _parts(statement: Statement, comparisons: Sequence[Comparison]) -> list[JudgedClaim]:
    by_exhibit = {comparison.exhibit.name: comparison for comparison in comparisons}
    exhibits = [by_exhibit[name] for name in statement.exhibits]
    return [judged for shown in exhibits for judged in shown.claims if statement.is_part(judged)]


def claims_table(comparisons: Sequence[Comparison], *, with_missing: bool = True) -> str:
    """Return one row a statement and place, with the differences that decide it.

    Args:
        comparisons: Of every exhibit.
        with_missing: Whether places without runs are named.
    """
    lines = ["| the paper says | where | verdict | on what |", "|---|---|---|---|"]
    for statement in STATEMENTS:
        parts = _parts(statement, comparisons)
        text = f"{statement.text} ({statement.source})"
        missing = []
        for where, title in PLACES.items():
            here = [p for p in parts if (p.claim.benchmark, p.variant) == where]
            if any(_num_seeds(part) for part in here):
                evidence = "; ".join(_difference(part) for part in here)
                lines.append(f"| {text} | {title} | {verdict(here)} | {evidence} |")
                text = ""
            elif here:
                missing.append(title)
        if missing and with_missing:
            lines.append(f"| {text} | {'; '.join(missing)} | {UNDECIDED} | not yet run |")
    return "\n".join(lines)


def _difference(part: JudgedClaim) -> str:
    claim, summary = part.claim, part.difference.summary
    pair = pair_title(claim.better, claim.worse)
    if claim.is_about_size:
        pair = f"{claim.capacity} slots"
    if summary is None:
        return f"{pair}: not yet run"
    mark = MARKS[part.verdict]
    if summary.low is None or summary.high is None:
        return f"{pair} {points(summary.mean)} (one seed) {mark}"
    interval = f"[{points(summary.low)}, {points(summary.high)}]"
    said = f"{pair} {points(summary.mean)} {interval}, n={summary.n} {mark}"
    return said if part.theirs is None else f"{said} (paper {points(part.theirs)})"
