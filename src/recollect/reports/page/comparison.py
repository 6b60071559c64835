"""The comparison table: means with intervals, and paired differences against any method."""

from collections.abc import Callable, Sequence

from recollect.experiments.records.record import Record
from recollect.reports.cells import (
    CellRuns,
    accuracy_just_learnt,
    area_under_curve,
    final_accuracy,
    final_forgetting,
    minimum_of_curve,
    most_comparable,
    share_seen,
    worst_case_of_curve,
)
from recollect.reports.names import benchmark_title
from recollect.reports.numbers import certainty, percent, points
from recollect.reports.page.parts import escape, owned, swatch, table
from recollect.reports.page.plots import slug
from recollect.reports.statistics import (
    FEWEST_SEEDS,
    PairedDifference,
    Summary,
    corrected,
    summarise,
)

Number = Callable[[Record], float]


def comparison(name: str, cells: Sequence[CellRuns]) -> str:
    """Return the table of all methods of a benchmark, differences against each of them."""
    chosen = default_reference(cells)
    options = "".join(
        f'<option value="{index}"{" selected" if cell is chosen else ""}>{escape(cell.label)}'
        "</option>"
        for index, cell in enumerate(cells)
    )
    select = (
        f'<p class="against"><label>Differences are against <select data-reference='
        f'"{escape(name)}">{options}</select></label></p>'
        if len(cells) > 1
        else ""
    )
    columns = {
        number: [differences_to(cells, reference, number) for reference in cells]
        for number in (final_accuracy, final_forgetting)
    }
    has_budget = any(share_seen(cell.records[0]) is not None for cell in cells)
    rows = []
    for place, cell in enumerate(cells):
        entries = [f'<a href="#{slug(cell.name)}">{swatch()}{escape(cell.label)}</a>']
        entries.append(str(len(cell.records)))
        for number, by_reference in columns.items():
            entries.append(summary_entry(cell.summary(number)))
            entries.append(
                "".join(
                    for_reference(
                        index,
                        index == cells.index(chosen),
                        "reference" if index == place else _difference_entry(found[place]),
                    )
                    for index, found in enumerate(by_reference)
                )
            )
        entries.append(summary_entry(cell.summary(accuracy_just_learnt)))
        along = (area_under_curve, minimum_of_curve, worst_case_of_curve)
        entries.extend(_optional_entry(cell, seen) for seen in along)
        if has_budget:
            share = share_seen(cell.records[0])
            entries.append("all" if share is None else percent(share))
        rows.append((owned(cell.method), entries))
    against = "".join(
        for_reference(index, cell is chosen, f"<small>minus {escape(cell.label)}</small>")
        for index, cell in enumerate(cells)
    )
    heading = [
        "Method",
        "Seeds",
        "Accuracy, %",
        f"Difference, points {against}",
        "Forgetting, %",
        f"Difference, points {against}",
        "Just learnt, %",
        "Any-time, %",
        "Minimum, %",
        "Worst case, %",
        *(["Stream seen, %"] if has_budget else []),
    ]
    caption = f"Comparison of methods on {benchmark_title(name)}"
    legend = (
        "Mean ± half the 95 % Student t interval over seeds, with the standard deviation (sd). "
        "Differences are paired over common seeds, with their 95 % interval and the p-value of an "
        "exact sign-flip test (a t test above 16 seeds), Holm-corrected within the column; "
        "<strong>bold</strong> below 5 %. Forgetting: best earlier accuracy on a segment minus "
        "the last, mean over all segments but the last. Just learnt: accuracy on each segment "
        "right after it, mean over segments; who learns less forgets less. Any-time: mean accuracy "
        "over the stream, the area under the curve below. Minimum: accuracy on each segment that "
        "is over at its worst look on that curve, mean over segments (min-ACC); worst case: that, "
        "with the last segment as it is at the end (WC-ACC)."
    )
    if has_budget:
        legend += " Stream seen: batches that the budget left time for; the stream does not wait."
    shown = table(heading, rows, caption=caption, css="comparison", is_caption_hidden=True)
    return f'<h3>Comparison</h3>{select}{shown}<p class="note">{legend}</p>'


def default_reference(cells: Sequence[CellRuns]) -> CellRuns:
    """Return what others are compared with when nobody says: ER, else the first.

    It is of the memory size, passes and protocol that most cells have.
    """
    comparable = most_comparable(cells)
    return next((cell for cell in comparable if cell.method == "er"), comparable[0])


def differences_to(
    cells: Sequence[CellRuns], reference: CellRuns, number: Number
) -> list[PairedDifference]:
    """Compare every cell with the reference, corrected over the comparisons of the column."""
    found = iter(
        corrected([cell.less(reference, number) for cell in cells if cell is not reference])
    )
    nothing = PairedDifference(None, None, "none")
    return [nothing if cell is reference else next(found) for cell in cells]


def difference_sentence(difference: PairedDifference) -> str:
    """Say a paired difference and how sure it is."""
    summary = difference.summary
    if summary is None:
        return "no common seed, so no comparison."
    if summary.low is None or summary.high is None or difference.adjusted is None:
        return f"{points(summary.mean)} points on one seed; nothing can be said from one."
    verdict = "a difference at the 5 % level" if difference.is_certain else "not certain yet"
    tested = f"too few for a test, which needs {FEWEST_SEEDS}"
    if difference.has_enough_seeds:
        tested = f"{_tested(difference)} after Holm"
    return (
        f"{points(summary.mean)} points (95 % interval {points(summary.low)} to "
        f"{points(summary.high)}, {count_seeds(summary.n)} in pairs, {tested}): {verdict}."
    )


def for_reference(index: int, is_chosen: bool, content: str) -> str:
    """Return content that is shown while the reference of that number is chosen."""
    hidden = "" if is_chosen else " hidden"
    return f'<span data-against="{index}"{hidden}>{content}</span>'


def summary_entry(summary: Summary) -> str:
    """Return a mean with its interval and standard deviation, or say that there is none."""
    if summary.half_width is None or summary.sd is None:
        return f"{percent(summary.mean)} <small>one seed: no interval</small>"
    return (
        f"{percent(summary.mean)} ± {percent(summary.half_width)} "
        f"<small>sd {percent(summary.sd)}</small>"
    )


def _difference_entry(difference: PairedDifference) -> str:
    summary = difference.summary
    if summary is None:
        return "<small>no common seed</small>"
    if summary.low is None or summary.high is None or difference.adjusted is None:
        return f"{points(summary.mean)} <small>one common seed</small>"
    shown = points(summary.mean)
    shown = f"<strong>{shown}</strong>" if difference.is_certain else shown
    return (
        f"{shown} <small>{points(summary.low)} to {points(summary.high)}, "
        f"{_tested(difference)}</small>"
    )


def _tested(difference: PairedDifference) -> str:
    shown = certainty(difference)
    if not difference.has_enough_seeds:
        return escape(shown)
    return f"p {shown}" if shown.startswith("<") else f"p = {shown}"


def _optional_entry(cell: CellRuns, number: Callable[[Record], float | None]) -> str:
    values = [value for record in cell.records if (value := number(record)) is not None]
    return summary_entry(summarise(values)) if values else "<small>no curve</small>"


def count_seeds(num: int) -> str:
    """Return how many seeds, in words."""
    return "1 seed" if num == 1 else f"{num} seeds"
