"""What a method adds at the end of a stream, and what it adds on the way there."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from recollect.experiments.records.record import Record
from recollect.reports.cells import CellRuns, accuracy_over_time, final_accuracy
from recollect.reports.names import benchmark_title
from recollect.reports.statistics import PairedDifference, Summary, corrected, paired_difference
from studies.gains.draw_gains import LINEAGE_COLOUR, TUNED_COLOUR
from studies.tables import PASSES, View, difference_entries, pair_title, signed

PAIRS: Final = (
    ("er-p", "er"),
    ("er-clip", "er"),
    ("er-c", "er"),
    ("er-mir", "er"),
    ("er-pc-mir", "er-mir"),
)
_DRAWN: Final = (("er-p", "er"), ("er-c", "er"), ("er-pc-mir", "er-mir"))


@dataclass(frozen=True)
class Pair:
    """One method beside another, on one benchmark, with one choice of settings."""

    benchmark: str
    is_lineage: bool
    one: CellRuns
    other: CellRuns

    @property
    def at_the_end(self) -> PairedDifference:
        """What it adds to the accuracy at the end."""
        return self._difference(final_accuracy)

    @property
    def on_the_way(self) -> PairedDifference:
        """What it adds to the accuracy on the segments met so far, averaged over the stream."""
        return self._difference(accuracy_on_the_way)

    def over_time(self) -> dict[int, Summary]:
        """Return the same by examples seen, at every point that all runs have."""
        ones = {r.seed: accuracy_over_time(r) for r in self.one.records}
        others = {r.seed: accuracy_over_time(r) for r in self.other.records}
        found = {}
        for seen in ones[self.one.records[0].seed]:
            first, second = (
                {seed: curve[seen] for seed, curve in runs.items()} for runs in (ones, others)
            )
            summary = paired_difference(first, second).summary
            assert summary is not None
            found[seen] = summary
        return found

    def _difference(self, number: Callable[[Record], float]) -> PairedDifference:
        return paired_difference(self.one.by_seed(number), self.other.by_seed(number))


def accuracy_on_the_way(record: Record) -> float:
    """Mean over evenly spaced points of the accuracy on the segments met so far."""
    return fmean(accuracy_over_time(record).values())


def pairs(
    benchmark: str, tuned: Sequence[Record], lineage: Sequence[Record]
) -> Iterator[tuple[tuple[str, str], Pair]]:
    """Give every pair of methods that has runs in common, tuned ones before the lineage's."""
    ((_, *ways),) = (place for place in PASSES if place[0] == benchmark)
    for is_lineage, way, records in zip((False, True), ways, (tuned, lineage), strict=True):
        cells = View(benchmark, way).cells(records)
        for one, other in PAIRS:
            if one in cells and other in cells:
                pair = Pair(benchmark, is_lineage, cells[one], cells[other])
                if pair.at_the_end.summary is not None:
                    yield (one, other), pair


def any_time_table(tuned: Sequence[Record], lineage: Sequence[Record]) -> str:
    """Return one row per pair: what it adds at the end and over the stream, and p of the latter."""
    found = [
        (names, pair)
        for benchmark, *_ in PASSES
        for names, pair in pairs(benchmark, tuned, lineage)
    ]
    lines = [
        "| benchmark | settings | | n | at the end | over the stream | p (Holm) |",
        "|---|---|---|---|---|---|---|",
    ]
    differences = corrected([pair.on_the_way for _, pair in found])
    for (names, pair), on_the_way in zip(found, differences, strict=True):
        at_the_end = pair.at_the_end.summary
        assert at_the_end is not None
        entries = [
            benchmark_title(pair.benchmark),
            "MIR's rate" if pair.is_lineage else "its own",
            pair_title(*names),
            str(at_the_end.n),
            signed(at_the_end),
            *difference_entries(on_the_way),
        ]
        lines.append("| " + " | ".join(entries) + " |")
    return "\n".join(lines)


def draw_any_time(tuned: Sequence[Record], lineage: Sequence[Record], path: Path) -> None:
    """Draw what three methods add, by examples seen: a row per pair, a column a benchmark."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    style: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with mpl.rc_context(style):
        figure = Figure(figsize=(9.2, 6.4), layout="constrained")
        grid: Any = figure.subplots(len(_DRAWN), len(PASSES), sharex="col", squeeze=False)
        for column, (benchmark, *_) in enumerate(PASSES):
            for names, pair in pairs(benchmark, tuned, lineage):
                if names in _DRAWN:
                    _draw_line(grid[_DRAWN.index(names)][column], pair)
            grid[0][column].set_title(benchmark_title(benchmark), loc="left", fontweight="bold")
            grid[-1][column].set_xlabel("examples seen")
        for names, row in zip(_DRAWN, grid, strict=True):
            row[0].set_ylabel(f"{pair_title(*names)},\npoints")
            for panel in row:
                panel.axhline(0, color="#9aa3ad", lw=1)
                panel.grid(axis="y", color="#e0e3e8")
                panel.set_axisbelow(True)
        first = grid[0][0]
        first.plot([], [], color=TUNED_COLOUR, label="settings chosen for each (joint pass)")
        first.plot([], [], color=LINEAGE_COLOUR, label="MIR's rate (and passes)")
        figure.legend(loc="outside lower center", ncols=2, frameon=False)
        FigureCanvasAgg(figure)
        figure.savefig(path, dpi=150, metadata={"Software": None})


def _draw_line(panel: Any, pair: Pair) -> None:
    colour = LINEAGE_COLOUR if pair.is_lineage else TUNED_COLOUR
    curve = pair.over_time()
    seen, summaries = list(curve), list(curve.values())
    panel.plot(seen, [100 * summary.mean for summary in summaries], color=colour, lw=1.6)
    if all(summary.n > 2 for summary in summaries):
        low, high = ([100 * (getattr(s, end) or 0) for s in summaries] for end in ("low", "high"))
        panel.fill_between(seen, low, high, color=colour, alpha=0.15, lw=0)
    for boundary in _boundaries(pair.one.records[0]):
        panel.axvline(boundary, color="#e0e3e8", lw=0.8, zorder=0)


def _boundaries(record: Record) -> list[float]:
    """Where a segment ends and the next begins; all are of one length on these benchmarks."""
    num_segments = len(record.total)
    return [record.num_examples * k / num_segments for k in range(1, num_segments)]
