"""How many seeds it takes to show a difference, from how far seeds lie apart."""

import math
from collections.abc import Sequence
from statistics import median
from typing import Final

from recollect.experiments.records.record import Record
from recollect.reports.cells import CellRuns, final_accuracy
from recollect.reports.names import benchmark_title
from recollect.reports.numbers import percent, points
from recollect.reports.statistics import FEWEST_SEEDS, LEVEL, paired_difference
from studies.gains.draw_gains import PAIRS
from studies.tables import PASSES, REPORTED, View, pair_title

CHANCE: Final = 0.8  # of showing a difference that is there
SHOWN_BY: Final = (10, 30, 100)
_FEWEST_FOR_A_SPREAD: Final = 5


def power(effect: float, n: int) -> float:
    """Return how likely a two-sided paired t test over n seeds shows a difference, with its sign.

    Args:
        effect: The true mean difference, in standard deviations of a seed's difference.
        n: Number of seeds.
    """
    from scipy import stats

    bound = stats.t.ppf(1 - LEVEL / 2, n - 1)
    return float(stats.nct.sf(bound, n - 1, effect * math.sqrt(n)))


def seeds_needed(difference: float, sd: float) -> int:
    """Return the fewest seeds that show a true difference in four of five tries."""
    n = FEWEST_SEEDS  # with fewer our test cannot be certain of anything
    while power(abs(difference) / sd, n) < CHANCE:
        n += 1
    return n


def least_shown(n: int, sd: float) -> float:
    """Return the smallest true difference that n seeds show in four of five tries."""
    from scipy import optimize

    # Two standard deviations are shown by any number of seeds from six on.
    return sd * float(optimize.brentq(lambda effect: power(effect, n) - CHANCE, 0.0, 2.0))


def seeds_table(tuned: Sequence[Record], lineage: Sequence[Record]) -> str:
    """Return one row per pair of methods: spread, what seeds show, seeds for the paper's gain."""
    lines = [
        "| benchmark | settings | | n | spread | were seeds not paired "
        + "".join(f"| {n} seeds show " for n in SHOWN_BY)
        + "| the paper's | seeds for it | core-minutes per seed |",
        "|---" * (9 + len(SHOWN_BY)) + "|",
    ]
    for benchmark, *ways in PASSES:
        for is_lineage, way, records in zip((False, True), ways, (tuned, lineage), strict=True):
            cells = View(benchmark, way).cells(records)
            for one, other in PAIRS:
                if one not in cells or other not in cells:
                    continue
                entries = _entries(cells[one], cells[other])
                if entries:
                    settings = "MIR's rate" if is_lineage else "its own"
                    row = [benchmark_title(benchmark), settings, pair_title(one, other), *entries]
                    lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def _entries(one: CellRuns, other: CellRuns) -> list[str]:
    """Return the numbers of a row; none from seeds too few to tell how far they lie apart."""
    accuracies = one.by_seed(final_accuracy), other.by_seed(final_accuracy)
    summary = paired_difference(*accuracies).summary
    if summary is None or summary.n < _FEWEST_FOR_A_SPREAD or not summary.sd:
        return []
    apart = math.hypot(*(cell.summary(final_accuracy).sd or 0 for cell in (one, other)))
    entries = [str(summary.n), percent(summary.sd), percent(apart)]
    entries += [percent(least_shown(n, summary.sd)) for n in SHOWN_BY]
    seconds = [median(record.cpu_seconds for record in cell.records) for cell in (one, other)]
    minutes = f"{sum(seconds) / 60:.2g}"
    theirs = [REPORTED.get(("accuracy", one.benchmark, cell.method)) for cell in (one, other)]
    if theirs[0] is None or theirs[1] is None:
        return [*entries, "", "", minutes]
    gain = (theirs[0].mean - theirs[1].mean) / 100
    return [*entries, points(gain), str(seeds_needed(gain, summary.sd)), minutes]
