"""A comparison with the paper as Markdown, LaTeX, CSV, or a table in the terminal."""

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Group
from rich.table import Table
from rich.text import Text

from recollect.paper.numbers import PAPER_SEEDS
from recollect.paper.tables import ComparedCell, Comparison, JudgedClaim, Variant, Verdict
from recollect.reports.names import benchmark_title, method_title, passes_title
from recollect.reports.numbers import certainty, percent, points
from recollect.reports.sizes import Reported
from recollect.reports.statistics import FEWEST_SEEDS, Summary

MARKS: Final = {
    "holds": "✓",
    "points its way, not certain": "(✓)",
    "points the other way, not certain": "(✗)",
    "less than the paper reports": "≪",
    "does not hold": "✗",
    "no data": "·",
}
_DASH: Final = "\u2013"
_STYLES: Final[dict[Verdict, str]] = {
    "holds": "green",
    "points its way, not certain": "yellow",
    "points the other way, not certain": "yellow",
    "less than the paper reports": "red",
    "does not hold": "red",
    "no data": "dim",
}
# As `claim_text` marks them.
_MARKED: Final[dict[Variant, str]] = {
    "separate": "those marked (separate)",
    "joint": "those marked (joint)",
    "any": "those without a mark",
}
_CLAIM_COLUMNS: Final = (
    "claim of the paper",
    "here",
    "difference",
    "95 % interval",
    "n",
    "p",
    "paper's",
)
_COLUMNS: Final = (
    "exhibit",
    "kind",
    "benchmark",
    "passes",
    "capacity",
    "metric",
    "method",
    "against",
    "paper_mean",
    "paper_spread",
    "paper_n",
    "n",
    "mean",
    "sd",
    "low",
    "high",
    "p_value",
    "p_holm",
    "test",
    "verdict",
    "spec_hash",
)


@dataclass(frozen=True)
class _Row:
    heading: str
    whose: str
    entries: tuple[str, ...]
    is_ours: bool


def as_markdown(comparison: Comparison) -> str:
    """Return the exhibit and the verdicts as Markdown tables."""
    columns = _columns(comparison)
    lines = [f"### {_title(comparison)}", "", *_markdown_row(["", "", *columns])]
    lines += _markdown_row(["---", "---", *("---:" for _ in columns)])
    for row in _rows(comparison):
        lines += _markdown_row([row.heading, row.whose, *row.entries])
    lines += ["", *(f"{line}  " for line in _legend(comparison)), ""]
    claims = [
        [claim_text(claim), f"{MARKS[claim.verdict]} {claim.verdict}", *_difference_entries(claim)]
        for claim in _tested(comparison)
    ]
    if claims:
        lines += _markdown_row(_CLAIM_COLUMNS)
        lines += _markdown_row(["---", "---", *("---:" for _ in _CLAIM_COLUMNS[2:])])
        lines += [line for claim in claims for line in _markdown_row(claim)]
        lines += [""]
    lines += [line for untested in _untested(comparison) for line in (untested, "")]
    return "\n".join(lines)


def as_latex(comparison: Comparison) -> str:
    """Return the exhibit and the verdicts as two LaTeX tabulars (package booktabs)."""
    columns = _columns(comparison)
    lines = [f"% {_title(comparison)}"]
    lines += [f"% {line}" for line in _legend(comparison)]
    lines += [f"\\begin{{tabular}}{{ll{'r' * len(columns)}}}", "\\toprule"]
    lines += [_latex_row(["", "", *columns]), "\\midrule"]
    lines += [_latex_row([row.heading, row.whose, *row.entries]) for row in _rows(comparison)]
    lines += ["\\bottomrule", "\\end{tabular}", ""]
    lines += [f"% {line}" for line in _untested(comparison)]
    claims = [
        _latex_row([claim_text(claim), claim.verdict, *_difference_entries(claim)])
        for claim in _tested(comparison)
    ]
    if claims:
        lines += ["\\begin{tabular}{llrrrrr}", "\\toprule", _latex_row(_CLAIM_COLUMNS)]
        lines += ["\\midrule", *claims, "\\bottomrule", "\\end{tabular}", ""]
    return "\n".join(lines)


def as_csv(comparisons: Sequence[Comparison]) -> str:
    """Return every cell and claim as one long table, numbers unrounded, in percent."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for comparison in comparisons:
        name = comparison.exhibit.name
        writer.writerows(_csv_cell(name, cell) for cell in comparison.cells)
        writer.writerows(_csv_claim(name, claim) for claim in comparison.claims)
    return text.getvalue()


def as_terminal(comparison: Comparison) -> Group:
    """Return something rich can print: the exhibit, what it means, the verdicts."""
    columns = _columns(comparison)
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("", "", *columns):
        shown.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for row in _rows(comparison):
        style = "" if row.is_ours else "dim"
        shown.add_row(Text(row.heading, style="bold"), row.whose, *row.entries, style=style)
    claims = Table(box=None, pad_edge=False, header_style="bold")
    said, *others = _CLAIM_COLUMNS
    for heading in (said, "", *others):
        left = heading in (said, "", "here")
        claims.add_column(heading, justify="left" if left else "right")
    for claim in _tested(comparison):
        style = _STYLES[claim.verdict]
        verdict = (Text(MARKS[claim.verdict], style=style), Text(claim.verdict, style=style))
        claims.add_row(claim_text(claim), *verdict, *_difference_entries(claim))
    legend = Text("\n".join(_legend(comparison)), style="dim")
    title = Text(_title(comparison), style="bold underline")
    parts = [claims] if claims.row_count else []
    untested = [Text(line, style="dim") for line in _untested(comparison)]
    return Group(title, Text(), shown, Text(), legend, Text(), *parts, *untested, Text())


def tally(comparisons: Sequence[Comparison]) -> Text:
    """Return one line over several exhibits: how many claims hold, and how many do not."""
    verdicts = Counter(claim.verdict for c in comparisons for claim in c.claims)
    line = Text(f"{verdicts.total()} claims: ", style="bold")
    many: dict[Verdict, str] = {
        "holds": "hold",
        "points its way, not certain": "point its way without certainty",
        "points the other way, not certain": "point the other way without certainty",
        "less than the paper reports": "show less than the paper reports",
        "does not hold": "do not hold",
        "no data": "have no data",
    }
    parts = [
        Text(f"{verdicts[verdict]} {words}", style=_STYLES[verdict])
        for verdict, words in many.items()
        if verdicts[verdict]
    ]
    return line + Text(", ").join(parts) + Text(".")


def _tested(comparison: Comparison) -> list[JudgedClaim]:
    return [claim for claim in comparison.claims if claim.verdict != "no data"]


def _untested(comparison: Comparison) -> list[str]:
    """Say in one line what there are no runs for; a screen of `no data` hides the rest."""
    where = Counter(
        claim_text(claim).split(":")[0] for claim in comparison.claims if claim.verdict == "no data"
    )
    if not where:
        return []
    listed = "; ".join(f"{place} ({num})" for place, num in where.items())
    mark = MARKS["no data"]
    return [f"{mark} no data for {where.total()} claims: {listed}"]


def claim_text(judged: JudgedClaim) -> str:
    """Say a claim in words, such as `MNIST-S: ER-P above ER`."""
    claim = judged.claim
    verb = "above" if claim.metric == "accuracy" else "forgets less than"
    where = benchmark_title(claim.benchmark)
    if judged.variant != "any":
        where += f" ({judged.variant})"
    if claim.is_about_size:
        where += f", {claim.capacity} slots"
    return f"{where}: {method_title(claim.better)} {verb} {method_title(claim.worse)}"


def _title(comparison: Comparison) -> str:
    name = re.sub(r"(\d)", r" \1", comparison.exhibit.name).capitalize()
    return f"{name}. {comparison.exhibit.title}"


def _columns(comparison: Comparison) -> list[str]:
    return list(dict.fromkeys(cell.column for cell in comparison.exhibit.cells))


def _rows(comparison: Comparison) -> list[_Row]:
    """One row of the paper's numbers, then one of ours for each variant."""
    rows = []
    columns = _columns(comparison)
    headings = dict.fromkeys(cell.row for cell in comparison.exhibit.cells)
    for heading in headings:
        own = [cell for cell in comparison.cells if cell.paper.row == heading]
        reported = {cell.paper.column: cell.paper.reported for cell in own}
        entries = tuple(_reported(reported.get(column)) for column in columns)
        rows.append(_Row(heading, "paper", entries, is_ours=False))
        for variant in dict.fromkeys(cell.variant for cell in own):
            ours = {cell.paper.column: cell.ours for cell in own if cell.variant == variant}
            entries = tuple(_ours(ours.get(column)) for column in columns)
            whose = "ours" if variant == "any" else f"ours, {passes_title(variant)}"
            rows.append(_Row("", whose, entries, is_ours=True))
    return rows


def _reported(number: Reported | None) -> str:
    return _DASH if number is None else f"{number.mean:.1f} ± {number.spread:.1f}"


def _ours(summary: Summary | None) -> str:
    if summary is None:
        return "not yet run"
    spread = "" if summary.half_width is None else f" ± {percent(summary.half_width)}"
    return f"{percent(summary.mean)}{spread} (n={summary.n})"


def _legend(comparison: Comparison) -> list[str]:
    lines = [
        f"paper: mean ± something it does not name, n = {PAPER_SEEDS}. "
        "ours: mean ± half the 95 % Student t interval over n seeds; no ± for one seed.",
        "p: two-sided paired test over common seeds (exact sign-flip up to 16, then t), "
        f"Holm-corrected over the claims below{_families(comparison)}; it cannot reach 5 % with "
        f"n < {FEWEST_SEEDS}. Forgetting: the cited definition.",
        "less than the paper reports: our difference is not significant, and it is significantly "
        "smaller than the paper's own (Welch, its ± read as standard deviations, Holm-corrected; "
        "our interval excludes the paper's difference).",
    ]
    return [*lines, *comparison.exhibit.remarks, *comparison.notes]


def _families(comparison: Comparison) -> str:
    """Say which claims are corrected together, where not all of them are."""
    found = {claim.variant for claim in _tested(comparison)}
    if len(found) < 2:
        return ""
    *others, last = [words for variant, words in _MARKED.items() if variant in found]
    return f", {', '.join(others)} and {last} each by themselves"


def _difference_entries(judged: JudgedClaim) -> list[str]:
    summary = judged.difference.summary
    theirs = "" if judged.theirs is None else points(judged.theirs)
    if summary is None:
        return ["", "", "0", "", theirs]
    interval = (
        "one seed"
        if summary.low is None or summary.high is None
        else f"{points(summary.low)} to {points(summary.high)}"
    )
    return [
        points(summary.mean),
        interval,
        str(summary.n),
        certainty(judged.difference),
        theirs,
    ]


def _markdown_row(entries: Sequence[str]) -> list[str]:
    return ["| " + " | ".join(entries) + " |"]


def _latex_row(entries: Sequence[str]) -> str:
    return " & ".join(_latex(entry) for entry in entries) + r" \\"


def _latex(text: str) -> str:
    escaped = text.replace("%", r"\%").replace("±", r"$\pm$").replace("\u2212", "$-$")
    return escaped.replace(_DASH, "--").replace("<", "$<$")


def _csv_cell(exhibit: str, cell: ComparedCell) -> dict[str, object]:
    paper = cell.paper
    row: dict[str, object] = {
        "exhibit": exhibit,
        "kind": "cell",
        "benchmark": paper.benchmark,
        "passes": cell.variant,
        "capacity": paper.capacity,
        "metric": paper.metric,
        "method": paper.method,
        "spec_hash": cell.spec_hash,
        "n": 0,
    }
    if paper.reported is not None:
        row["paper_mean"], row["paper_spread"] = paper.reported.mean, paper.reported.spread
        row["paper_n"] = PAPER_SEEDS
    return row | _csv_summary(cell.ours)


def _csv_claim(exhibit: str, judged: JudgedClaim) -> dict[str, object]:
    claim, difference = judged.claim, judged.difference
    row: dict[str, object] = {
        "exhibit": exhibit,
        "kind": "claim",
        "benchmark": claim.benchmark,
        "passes": judged.variant,
        "capacity": claim.capacity,
        "metric": claim.metric,
        "method": claim.better,
        "against": claim.worse,
        "verdict": judged.verdict,
        "test": difference.test,
        "p_value": "" if difference.p_value is None else difference.p_value,
        "p_holm": "" if difference.adjusted is None else difference.adjusted,
        "n": 0,
    }
    if judged.theirs is not None:
        row["paper_mean"], row["paper_n"] = 100 * judged.theirs, PAPER_SEEDS
    return row | _csv_summary(difference.summary)


def _csv_summary(summary: Summary | None) -> dict[str, object]:
    if summary is None:
        return {}
    numbers = {
        "mean": summary.mean,
        "sd": summary.sd,
        "low": summary.low,
        "high": summary.high,
    }
    shown = {key: 100 * value for key, value in numbers.items() if value is not None}
    return {"n": summary.n, **shown}
