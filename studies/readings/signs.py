"""A table of CRS with either sign of c: does the margin increment point at what may go?"""

from collections.abc import Mapping, Sequence
from typing import Final

from recollect.experiments.records.record import Record
from recollect.reports.cells import CellRuns, final_accuracy, group_cells
from recollect.reports.numbers import certainty
from recollect.reports.statistics import PairedDifference, corrected, paired_difference
from studies.readings.mnist_margins import MARGINS, RATES
from studies.tables import NOT_RUN, signed, spread

_HEADINGS: Final = (
    "learning rate",
    "MI at",
    "n",
    "ER",
    "c = 1",
    "minus ER",
    "c = \N{MINUS SIGN}1",
    "minus ER",
    "c = 1 minus c = \N{MINUS SIGN}1",
    "p (Holm)",
)


def signs_table(records: Sequence[Record]) -> str:
    """Return one row a learning rate and time of measuring; EX alone has no sign to turn."""
    found = {cell.method: cell for cell in group_cells(records)}
    if any(f"er{rate.suffix}" not in found for rate in RATES):
        return NOT_RUN
    pairs = [
        (f"{at}-up{rate.suffix}", f"{at}-down{rate.suffix}") for rate in RATES for at in MARGINS
    ]
    tests = corrected([_minus(found, up, down) for up, down in pairs])
    by_pair = dict(zip(pairs, tests, strict=True))
    lines = ["| " + " | ".join(_HEADINGS) + " |", "|---" * len(_HEADINGS) + "|"]
    for rate in RATES:
        er = f"er{rate.suffix}"
        alone = [*_beside(found, f"ex{rate.suffix}", er), "", "", "", ""]
        lines.append(_row(rate.value, "never (EX alone)", found[er], alone))
        for at in MARGINS:
            up, down = f"{at}-up{rate.suffix}", f"{at}-down{rate.suffix}"
            test = by_pair[up, down]
            ends = ["" if test.summary is None else signed(test.summary), certainty(test)]
            entries = [*_beside(found, up, er), *_beside(found, down, er), *ends]
            lines.append(_row(rate.value, at, found[er], entries))
    return "\n".join(lines)


def _minus(found: Mapping[str, CellRuns], one: str, other: str) -> PairedDifference:
    return paired_difference(
        found[one].by_seed(final_accuracy), found[other].by_seed(final_accuracy)
    )


def _beside(found: Mapping[str, CellRuns], reading: str, er: str) -> list[str]:
    gain = _minus(found, reading, er).summary
    accuracy = spread(found[reading].summary(final_accuracy))
    return [accuracy, "" if gain is None else signed(gain)]


def _row(rate: float, at: str, er: CellRuns, entries: Sequence[str]) -> str:
    start = [f"{rate:g}", at, str(len(er.records)), spread(er.summary(final_accuracy))]
    return "| " + " | ".join([*start, *entries]) + " |"
