"""Our numbers beside the paper's, and whether its orderings hold here."""

import dataclasses
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from recollect.experiments.records.record import Record
from recollect.paper.numbers import (
    BATCH_NORM,
    EXHIBITS,
    PAPER_SEEDS,
    Claim,
    Exhibit,
    Metric,
    PaperCell,
)
from recollect.reports.cells import (
    CellRuns,
    final_accuracy,
    final_forgetting,
    group_cells,
)
from recollect.reports.recipes import left_out, made_otherwise, said_of
from recollect.reports.statistics import (
    LEVEL,
    PairedDifference,
    Summary,
    corrected,
    gap_p_value,
    holm,
    paired_difference,
)

Verdict = Literal[
    "holds",
    "points its way, not certain",
    "points the other way, not certain",
    "less than the paper reports",
    "does not hold",
    "no data",
]
# What a row of ours is about: under BatchNorm one pass and two are different methods (note P12).
Variant = Literal["separate", "joint", "any"]

_NUMBER: Final = {"accuracy": final_accuracy, "forgetting": final_forgetting}
_PROTOCOL: Final = "paper"


@dataclass(frozen=True)
class ComparedCell:
    """One place of an exhibit: the paper's number and ours.

    Attributes:
        paper: The place and what the paper prints there.
        variant: Which passes ours are.
        ours: Mean and interval over our seeds, as shares; None without runs.
        spec_hash: Of the runs behind `ours`, "" without.
    """

    paper: PaperCell
    variant: Variant
    ours: Summary | None
    spec_hash: str


@dataclass(frozen=True)
class JudgedClaim:
    """One ordering claim and what our runs say about it.

    Attributes:
        claim: The claim.
        variant: Which passes our runs are.
        difference: Better minus worse over common seeds, as shares, Holm-corrected over the claims
            of the exhibit and variant.
        verdict: What follows at 5 %.
        theirs: Better minus worse by the paper's own numbers, as a share; None if it prints
            only one of them.
    """

    claim: Claim
    variant: Variant
    difference: PairedDifference
    verdict: Verdict
    theirs: float | None = None


@dataclass(frozen=True)
class Comparison:
    """An exhibit of the paper beside ours.

    Attributes:
        exhibit: The paper's side.
        cells: Every place, once per variant.
        claims: Every claim, once per variant.
        notes: What a reader must know to read it right.
    """

    exhibit: Exhibit
    cells: tuple[ComparedCell, ...]
    claims: tuple[JudgedClaim, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class WantedCell:
    """One cell to run for an exhibit: benchmark, method, memory and passes."""

    benchmark: str
    method: str
    capacity: int
    passes: str


def exhibit_named(name: str) -> Exhibit:
    """Look an exhibit up.

    Raises:
        ValueError: The paper has no such table or figure.
    """
    if name not in EXHIBITS:
        raise ValueError(f"`name` is {name!r}; choose one of {', '.join(EXHIBITS)} or all.")
    return EXHIBITS[name]


def limited(exhibit: Exhibit, benchmarks: Collection[str]) -> Exhibit:
    """Return the part of an exhibit that is about some benchmarks."""
    return dataclasses.replace(
        exhibit,
        cells=tuple(cell for cell in exhibit.cells if cell.benchmark in benchmarks),
        claims=tuple(claim for claim in exhibit.claims if claim.benchmark in benchmarks),
    )


def variants(benchmark: str) -> tuple[Variant, ...]:
    """Return which passes a benchmark is shown with: both where BatchNorm makes them differ."""
    return ("separate", "joint") if benchmark in BATCH_NORM else ("any",)


def wanted_cells(exhibit: Exhibit) -> list[WantedCell]:
    """List the cells an exhibit needs, each once."""
    return list(
        dict.fromkeys(
            WantedCell(
                cell.benchmark,
                cell.method,
                cell.capacity,
                "joint" if variant == "any" else variant,
            )
            for cell in exhibit.cells
            for variant in variants(cell.benchmark)
            # Without a memory there is nothing to pass jointly or separately.
            if cell.method != "van" or variant != "separate"
        )
    )


def compare(exhibit: Exhibit, records: Iterable[Record]) -> Comparison:
    """Put our runs beside an exhibit and judge its claims.

    A claim *holds* if the paired difference points its way and p < 5 % after Holm's correction over
    the claims of the exhibit that could be tested, each variant a family of its own; it *does not
    hold* if the difference is as certain and points the other way. A claim that does neither is
    *less than the paper reports* if our difference is as certainly below the paper's: by a Welch
    test that reads the paper's +/- as standard deviations over its runs, and our interval excludes
    the paper's difference. Any other claim is *not certain*.

    Args:
        exhibit: Such as `exhibit_named("table1")`.
        records: Any records. Used are those of the paper's protocol that were made as the
            benchmark's spec says; a note counts the others of that protocol.
    """
    shown = {(cell.benchmark, cell.method) for cell in exhibit.cells}
    asked = [
        record
        for record in records
        if record.protocol == _PROTOCOL and (record.benchmark, record.method) in shown
    ]
    cells = group_cells(record for record in asked if not made_otherwise(record))
    notes = left_out(record for record in asked if record.status == "done")
    compared = []
    for variant in _all_variants(exhibit):
        for place in exhibit.cells:
            if variant not in variants(place.benchmark):
                continue
            ours = _choose(cells, place.benchmark, place.method, place.capacity, variant, notes)
            summary = None if ours is None else ours.summary(_NUMBER[place.metric])
            compared.append(
                ComparedCell(place, variant, summary, "" if ours is None else ours.spec_hash)
            )
    order = {id(place): index for index, place in enumerate(exhibit.cells)}
    compared.sort(key=lambda cell: order[id(cell.paper)])
    judged: list[JudgedClaim] = []
    for variant in _all_variants(exhibit):
        judged += _judge(exhibit, cells, variant)
    return Comparison(exhibit, tuple(compared), tuple(judged), tuple(dict.fromkeys(notes)))


def _all_variants(exhibit: Exhibit) -> tuple[Variant, ...]:
    found = dict.fromkeys(v for cell in exhibit.cells for v in variants(cell.benchmark))
    return tuple(found)


def _judge(exhibit: Exhibit, cells: list[CellRuns], variant: Variant) -> list[JudgedClaim]:
    """Judge the claims of one variant as one family."""
    claims = [claim for claim in exhibit.claims if variant in variants(claim.benchmark)]
    differences = corrected([_difference(claim, cells, variant) for claim in claims])
    shortfalls = [
        _shortfall(claim, exhibit, difference)
        for claim, difference in zip(claims, differences, strict=True)
    ]
    adjusted = iter(holm([p_value for p_value in shortfalls if p_value is not None]))
    judged = []
    for claim, difference, shortfall in zip(claims, differences, shortfalls, strict=True):
        is_short = shortfall is not None and next(adjusted) < LEVEL
        said = _verdict(claim.metric, difference, is_short=is_short)
        judged.append(JudgedClaim(claim, variant, difference, said, _theirs(claim, exhibit)))
    return judged


def _theirs(claim: Claim, exhibit: Exhibit) -> float | None:
    printed = exhibit.reported(claim)
    return None if printed is None else (printed[0].mean - printed[1].mean) / 100


def _shortfall(claim: Claim, exhibit: Exhibit, ours: PairedDifference) -> float | None:
    """Return the p-value of a gain smaller than the paper's; None where there is none to test."""
    printed, theirs = exhibit.reported(claim), _theirs(claim, exhibit)
    if printed is None or theirs is None or ours.summary is None:
        return None
    sd, half_width = ours.summary.sd, ours.summary.half_width
    if sd is None or half_width is None:
        return None
    gap = theirs - ours.summary.mean
    p_value = gap_p_value(
        gap,
        [
            (sd, ours.summary.n),
            *((number.spread / 100, PAPER_SEEDS) for number in printed),
        ],
    )
    is_smaller = gap > 0 if claim.metric == "accuracy" else gap < 0
    # Welch takes the paper's ten runs for most of the degrees of freedom, so two of ours that agree
    # by luck would pass for knowledge.
    is_possible = abs(gap) <= half_width
    return p_value if is_smaller and not is_possible else 1.0


def _difference(claim: Claim, cells: list[CellRuns], variant: Variant) -> PairedDifference:
    better, worse = (
        _choose(cells, claim.benchmark, method, claim.capacity, variant, [])
        for method in (claim.better, claim.worse)
    )
    if better is None or worse is None:
        return PairedDifference(None, None, "none")
    number = _NUMBER[claim.metric]
    return paired_difference(better.by_seed(number), worse.by_seed(number))


def _verdict(metric: Metric, difference: PairedDifference, *, is_short: bool) -> Verdict:
    if difference.summary is None:
        return "no data"
    gain = difference.summary.mean if metric == "accuracy" else -difference.summary.mean
    if difference.is_certain:
        return "holds" if gain > 0 else "does not hold"
    if is_short:
        return "less than the paper reports"
    return "points its way, not certain" if gain > 0 else "points the other way, not certain"


def _choose(
    cells: list[CellRuns],
    benchmark: str,
    method: str,
    capacity: int,
    variant: Variant,
    notes: list[str],
) -> CellRuns | None:
    """Find our cell for a place; of several specs the one with most seeds, and say so."""
    fitting = [
        cell
        for cell in cells
        if (cell.benchmark, cell.method) == (benchmark, method)
        and (method == "van" or cell.capacity == capacity)
        and _fits(cell, variant)
    ]
    if not fitting:
        return None
    chosen = max(fitting, key=lambda cell: (len(cell.records), cell.records[-1].started_at))
    if len(fitting) > 1:
        notes.append(
            f"{benchmark} {method} with {capacity} slots: {len(fitting)} specs fit; shown is "
            f"{chosen.spec_hash[:8]}, which has the most seeds ({len(chosen.records)})."
        )
    notes += said_of(chosen.records[0])
    if variant == "separate" and chosen.passes == "grouped":
        notes.append(f"{benchmark} {method}: replayed examples pass in groups of their own.")
    return chosen


def _fits(cell: CellRuns, variant: Variant) -> bool:
    if variant == "any" or cell.method == "van":
        return True
    if variant == "separate":
        return cell.passes in ("separate", "grouped")
    return cell.passes == "joint"
