"""What a table shows, in sentences that a reader can repeat. Made from the numbers alone."""

from collections.abc import Sequence

from recollect.reports.names import method_title
from recollect.reports.numbers import percent, points, probability
from recollect.reports.statistics import FEWEST_SEEDS, PairedDifference
from recollect.reports.summary import SummaryRow


def conclude(rows: Sequence[SummaryRow]) -> list[str]:
    """Say where each method ends, and whether more than chance sets it apart from the baseline.

    Args:
        rows: The rows of one table: one benchmark, one protocol, one memory size.

    Returns:
        One sentence about accuracy, one per difference, one about forgetting. None without rows.
    """
    if not rows:
        return []
    first, *others = rows
    ends = [
        f"{_with_memory(first)} ends with {percent(first.accuracy.mean)} % of the test answers "
        "right",
        *(f"{_with_memory(row)} with {percent(row.accuracy.mean)} %" for row in others),
    ]
    lost = [f"{percent(row.forgetting.mean)} with {method_title(row.method)}" for row in rows]
    return [
        _listed(ends) + ".",
        *(_compared(row, row.difference) for row in rows if row.difference is not None),
        "Forgetting, the points that an earlier segment has lost since it was known best: "
        f"{_listed(lost)}.",
    ]


def lead(
    where: str, best: str, accuracy: float, reference: str, difference: PairedDifference
) -> str:
    """Say in one sentence what a reader can repeat: who ends best, by how much, how surely.

    Args:
        where: The benchmark, and what its methods have in common.
        best: The method with the highest mean accuracy.
        accuracy: That mean, as a share.
        reference: The method that others are compared with, or the second if it is the best.
        difference: Of the best, less the reference.
    """
    ends = f"On {where}, {best} ends with {percent(accuracy)} % of the test answers right"
    if difference.summary is None:
        return f"{ends}."
    mean = difference.summary.mean
    size = points(abs(mean)).lstrip("+")
    apart = f"{size} points {'above' if mean > 0 else 'below'}" if float(size) else "level with"
    return f"{ends}, {apart} {reference}: {_certainty(difference)}."


def _compared(row: SummaryRow, difference: PairedDifference) -> str:
    title, baseline = method_title(row.method), method_title(row.baseline)
    if difference.summary is None:
        return f"{title} and {baseline} have no seed in common, so they cannot be compared."
    mean = difference.summary.mean
    size = points(abs(mean)).lstrip("+")
    side = "above" if mean > 0 else "below"
    ends = f"{size} points {side}" if float(size) else "level with"
    return f"{title} is {ends} {baseline}: {_certainty(difference)}."


def _certainty(difference: PairedDifference) -> str:
    summary = difference.summary
    p_value = difference.p_value if difference.adjusted is None else difference.adjusted
    if summary is None or p_value is None:
        return "one seed cannot tell that from chance"
    if not difference.has_enough_seeds:
        return f"{summary.n} seeds cannot tell that from chance, {FEWEST_SEEDS} or more can"
    said = "more than chance explains" if difference.is_certain else "chance may explain that"
    shown = probability(p_value)
    shown = shown if shown.startswith("<") else f"= {shown}"
    return f"{said} ({summary.n} seeds, p {shown})"


def _with_memory(row: SummaryRow) -> str:
    memory = f"{row.capacity} slots" if row.capacity else "no memory"
    return f"{method_title(row.method)} ({memory})"


def _listed(parts: Sequence[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
