"""Write what the records say into README.md and docs; a test runs it with --check.

    python -m studies.document [--check]

Text between `<!-- begin: NAME -->` and `<!-- end: NAME -->` is made here, from the records in
`results/`; the words around it are written by hand.
"""

import argparse
import dataclasses
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from recollect.experiments.records.record import Record
from recollect.paper.figures import draw_comparison
from recollect.paper.formats import as_markdown
from recollect.paper.numbers import CAPACITY, EXHIBITS
from recollect.paper.tables import Comparison, compare
from recollect.reports.cells import CellRuns, group_cells
from recollect.reports.figures import write_figure
from recollect.reports.names import benchmark_title
from recollect.reports.reading import read_store
from studies import front, optimizers
from studies.appendix import by_seed_table, first_class_table, tuned_table
from studies.batch_norm import recalibrate
from studies.batch_norm.draw_passes import PassesBlock, draw_passes, reading_lines, whole_lines
from studies.batch_norm.passes import CIFAR_PAIRS, passes_table, short_passes_table, weighing_table
from studies.batch_norm.remains import Setting, remains_table
from studies.crs import scores
from studies.crs.by_segment import by_segment_table, draw_by_segment
from studies.crs.memory import crs_table, draw_crs
from studies.draw_forgetting import draw_forgetting
from studies.gains.any_time import any_time_table, draw_any_time
from studies.gains.claims import claims_table, glance_table
from studies.gains.draw_gains import draw_gains
from studies.gains.seeds_needed import seeds_table
from studies.kept import read_kept, read_rows
from studies.machines.draw_machines import draw_machines
from studies.machines.machines import machines_table, pairs_table, repeats_table
from studies.mir import learner as mir_learner
from studies.pgd import measured as pgd_measured
from studies.pgd import weights as pgd_weights
from studies.pgd.parts import draw_parts, parts_table
from studies.readings import mini_imagenet_split as mini
from studies.readings.segments import segments_table
from studies.readings.signs import signs_table
from studies.readings.studies import (
    CIFAR,
    CIFAR_GROUP_NORM,
    MINI_FIVE,
    MINI_SHORT,
    MNIST,
    MNIST_MARGINS,
    STUDIES,
    readings_table,
)
from studies.tables import (
    BEYOND,
    PAPER_METHODS,
    View,
    beyond_table,
    core_minutes,
    rates_table,
    results_table,
)
from studies.tuning.committed import committed_study

ROOT: Final = Path(__file__).parents[1]
APPENDICES: Final = (
    "mnist-split",
    "mnist-permuted",
    "cifar10-split",
    "mini-imagenet-split",
    "learning-rates",
    "over-the-stream",
    "seeds",
    "rounding",
    "claims",
    "paper-tables",
    "paper-figures",
    "changes",
    "batch-norm-passes",
    "batch-norm-pgd",
    "crs-mnist-split",
    "crs-cifar10-split",
)
PAGES: Final = (
    "README.md",
    "docs/reproduction.md",
    *(f"docs/appendix/{name}.md" for name in APPENDICES),
    "docs/pgd.md",
    "docs/crs.md",
    "docs/batch-norm.md",
    "docs/paper-notes.md",
    "docs/benchmarks.md",
    "docs/optimizers.md",
)
_BLOCK: Final = re.compile(r"<!-- begin: ([a-z0-9-]+) -->\n(.*?)<!-- end: \1 -->", re.DOTALL)


@cache
def records() -> list[Record]:
    """Read the records of the tables."""
    return read_store(ROOT / "results")


@cache
def lineage_records() -> list[Record]:
    """Read the records of runs with one learning rate for all methods."""
    return read_store(ROOT / "results" / "lineage")


@cache
def faster_lineage_records() -> list[Record]:
    """Read the records of MNIST-S with the other rate that MIR's script has had, 0.1."""
    return read_store(ROOT / "results" / "lineage-0.1")


@cache
def records_elsewhere() -> list[Record]:
    """Read the records of the same seeds on another kind of processor."""
    return read_store(ROOT / "results" / "another-machine")


@cache
def optimizer_records() -> list[Record]:
    """Read the records of methods under several optimizers; none before the first was made."""
    store = ROOT / "results" / "optimizers"
    return read_store(store) if store.exists() else []


@cache
def longer_search_records() -> list[Record]:
    """Read the records of the same methods and seeds under SGD with the settings of the tables."""
    store = ROOT / "results" / "longer-search"
    return read_store(store) if store.exists() else []


@cache
def comparisons() -> list[Comparison]:
    """Put them beside everything the paper shows."""
    return [compare(exhibit, records()) for exhibit in EXHIBITS.values()]


@cache
def lineage_comparisons() -> list[Comparison]:
    """Put the runs at MIR's rate beside everything the paper shows."""
    return [compare(exhibit, lineage_records()) for exhibit in EXHIBITS.values()]


def paper(kind: str) -> str:
    """What `recollect paper all --store results --no-run --format markdown` prints of a kind."""
    shown = [c for c in comparisons() if c.exhibit.name.startswith(kind)]
    return "\n".join(as_markdown(comparison) for comparison in shown).rstrip("\n")


def _tuned() -> str:
    names = ("mnist-split", "mnist-permuted", "cifar10-split")
    studies = [committed_study(name) for name in names]
    return tuned_table(studies, {_MINI: "CIFAR10-S's settings"})


def _passes() -> list[PassesBlock]:
    """What is known of one pass and two, by length of the stream."""
    short = reading_lines(CIFAR_PAIRS, CIFAR.records(), CIFAR_GROUP_NORM.records())
    return [
        PassesBlock("CIFAR10-S, 3000 a segment, validation", short),
        PassesBlock("CIFAR10-S, whole streams, test", whole_lines(records())),
        PassesBlock(
            "MINI-S, five segments, validation", reading_lines(mini.PAIRS, MINI_FIVE.records())
        ),
    ]


def _memory_sizes() -> Comparison:
    """Tables 3 and 4 as one, to be seen beside each other."""
    accuracy, forgetting = (
        next(c for c in comparisons() if c.exhibit.name == name) for name in ("table3", "table4")
    )
    exhibit = dataclasses.replace(accuracy.exhibit, title="Tables 3 and 4: by memory size")
    return dataclasses.replace(accuracy, exhibit=exhibit, cells=accuracy.cells + forgetting.cells)


def times() -> str:
    """How long it all took."""
    lines = ["| | runs | failed | core-minutes |", "|---|---|---|---|"]
    for benchmark in CAPACITY:
        own = [record for record in records() if record.benchmark == benchmark]
        title = benchmark_title(benchmark)
        lines.append(_time(f"{title}: tables", own))
        path = ROOT / "results" / "tuning" / f"{benchmark}.parquet"
        untuned = [record for record in lineage_records() if record.benchmark == benchmark]
        if untuned:
            lines.append(_time(f"{title}: MIR's learning rate", untuned))
        faster = [record for record in faster_lineage_records() if record.benchmark == benchmark]
        if faster:
            lines.append(_time(f"{title}: MIR's other rate, 0.1", faster))
        elsewhere = [record for record in records_elsewhere() if record.benchmark == benchmark]
        if elsewhere:
            lines.append(_time(f"{title}: the same on another processor", elsewhere))
        lines.append(_time(f"{title}: choice of settings", list(read_kept(path).values())))
    lines += [_time(f"{study.title}: readings", study.records()) for study in STUDIES.values()]
    return "\n".join(lines)


def _time(label: str, own: Sequence[Record]) -> str:
    failed = sum(record.status != "done" for record in own)
    return f"| {label} | {len(own)} | {failed} | {core_minutes(own):.0f} |"


def _beyond(benchmark: str, methods: Sequence[str], passes: str | None = None) -> str:
    return beyond_table(View(benchmark, passes), records(), methods)


_DIGITS: Final = ("0 and 1", "2 and 3", "4 and 5", "6 and 7", "8 and 9")  # MNIST-S's segments
_PERMUTED: Final = ("er-p-mir", "er-pc-equal")
_LINEAGE_PERMUTED: Final = ("er", "er-p", "er-c", "er-pc", "er-mir", "er-pc-mir")
_CIFAR: Final = "cifar10-split"
_MINI: Final = "mini-imagenet-split"


def _cifar_trials() -> list[Record]:
    tuning = ROOT / "results" / "tuning"
    studies = (f"{_CIFAR}.parquet", f"{_CIFAR}-contributions.parquet")
    return [record for study in studies for record in read_kept(tuning / study).values()]


def _pairs_by_rate() -> str:
    runs = {
        "each its own rate": records(),
        "0.05 for all": lineage_records(),
        "0.1 for all": faster_lineage_records(),
    }
    return pairs_table({which: View("mnist-split").cells(own) for which, own in runs.items()})


@cache
def _lineage_cifar() -> dict[str, CellRuns]:
    """CIFAR10-S as MIR's code runs it, by method."""
    return View(_CIFAR, "separate").cells(lineage_records())


def _lineage_crs() -> tuple[CellRuns, CellRuns]:
    found = _lineage_cifar()
    return found["er"], found["er-c"]


def _remains() -> str:
    short, five, group = (
        {cell.method: cell for cell in group_cells(study.records())}
        for study in (CIFAR, MINI_FIVE, CIFAR_GROUP_NORM)
    )
    joint, separate = (
        {pair[1]: five[pair[way]] for pair in mini.PAIRS if pair[way] in five} for way in (1, 2)
    )

    def named(found: Mapping[str, CellRuns], er: str, er_p: str, er_c: str) -> dict[str, CellRuns]:
        names = {"er": er, "er-p": er_p, "er-c": er_c}
        return {method: found[name] for method, name in names.items() if name in found}

    lineage = "as MIR's code runs it"
    return remains_table(
        Setting(_CIFAR, "joint pass", View(_CIFAR, "joint").cells(records())),
        Setting(_CIFAR, "separate passes", View(_CIFAR, "separate").cells(records())),
        Setting(_CIFAR, lineage, View(_CIFAR, "separate").cells(lineage_records())),
        Setting(_CIFAR, "short, joint pass", named(short, "er", "p", "s1-replay")),
        Setting(
            _CIFAR,
            f"short, {lineage}",
            named(short, "er-lineage", "p-grouped-lineage", "s1-replay-lineage"),
        ),
        Setting(_CIFAR, "short, GroupNorm", named(group, "er", "p", "s1-replay")),
        Setting(_MINI, "joint pass", View(_MINI, "joint").cells(records())),
        Setting(_MINI, "first five segments, joint pass", joint),
        Setting(_MINI, "first five segments, separate passes", separate),
    )


BLOCKS: Final[Mapping[str, Callable[[], str]]] = {
    "claims": lambda: claims_table(comparisons()),
    "choice": lambda: front.choice(records()),
    "findings": lambda: front.findings(records(), lineage_records()),
    "peers": lambda: front.peers(ROOT / "docs" / "performance"),
    "glance": lambda: glance_table(comparisons(), lineage_comparisons()),
    "claims-lineage": lambda: claims_table(lineage_comparisons(), with_missing=False),
    "mnist-split": lambda: results_table(View("mnist-split"), records()),
    "mnist-permuted": lambda: results_table(View("mnist-permuted"), records()),
    "lineage-mnist-split": lambda: results_table(View("mnist-split"), lineage_records()),
    "lineage-mnist-permuted": lambda: results_table(
        View("mnist-permuted"), lineage_records(), _LINEAGE_PERMUTED
    ),
    "machines": lambda: machines_table(View("mnist-split"), records(), records_elsewhere()),
    "repeats": lambda: repeats_table(View("mnist-split"), records(), records_elsewhere()),
    "repeats-permuted": lambda: repeats_table(View("mnist-permuted"), records(), []),
    "repeats-lineage": lambda: repeats_table(View("mnist-split"), lineage_records(), []),
    "faster-mnist-split": lambda: results_table(
        View("mnist-split"),
        faster_lineage_records(),
        ("van", "er", "er-p", "er-c", "er-pc", "er-mir", "er-p-mir", "er-pc-mir"),
    ),
    "pairs-by-rate": _pairs_by_rate,
    "rates": lambda: rates_table(records(), lineage_records()),
    "cifar10-joint": lambda: results_table(View(_CIFAR, "joint"), records()),
    "cifar10-separate": lambda: results_table(View(_CIFAR, "separate"), records()),
    "cifar10-lineage": lambda: results_table(
        View(_CIFAR, "separate"), lineage_records(), ("er", "er-p", "er-c", "er-pc")
    ),
    "cifar10-crs-joint": lambda: results_table(
        View(_CIFAR, "joint"), records(), ("er", "er-c", "er-c-replay")
    ),
    "cifar10-passes": lambda: passes_table(records()),
    "cifar10-passes-short": lambda: short_passes_table(CIFAR.records()),
    "mini-passes-short": lambda: short_passes_table(MINI_SHORT.records(), mini.PAIRS[:1]),
    "batch-norm-gains": _remains,
    "mini-passes-five": lambda: short_passes_table(MINI_FIVE.records(), mini.PAIRS),
    "mini-gains-five": lambda: segments_table(
        MINI_FIVE, MINI_FIVE.records(), *(m for m in PAPER_METHODS if m != "er")
    ),
    "cifar10-recalibration": lambda: recalibrate.recalibration_table(read_rows(recalibrate.KEPT)),
    "cifar10-weighing": lambda: weighing_table(_cifar_trials()),
    "mini-imagenet": lambda: results_table(View(_MINI, "joint"), records()),
    "any-time": lambda: any_time_table(records(), lineage_records()),
    "seeds": lambda: seeds_table(records(), lineage_records()),
    "beyond-mnist-split": lambda: _beyond("mnist-split", list(BEYOND)),
    "beyond-mnist-permuted": lambda: _beyond("mnist-permuted", _PERMUTED),
    "paper-tables": lambda: paper("table"),
    "paper-figures": lambda: paper("figure"),
    "tuned": _tuned,
    "cifar10-by-seed": lambda: by_seed_table(_lineage_cifar(), ("er-p", "er-c", "er-pc")),
    "cifar10-first-class": lambda: first_class_table(_lineage_cifar(), ("er", "er-c")),
    "times": times,
    # At ER's own rate the memory is the same: what a rate changes is told by the accuracies.
    "crs": lambda: crs_table(MNIST, MNIST.records(), against=["er"]),
    "cifar10-crs": lambda: crs_table(CIFAR, CIFAR.records()),
    "mnist-signs": lambda: signs_table(MNIST_MARGINS.records()),
    "pgd-parts-mnist-split": lambda: parts_table(
        View("mnist-split"), records(), ["uniform", "MIR"]
    ),
    "pgd-parts-mnist-permuted": lambda: parts_table(View("mnist-permuted"), records(), ["uniform"]),
    "pgd-measured": pgd_measured.as_markdown,
    "pgd-weights": lambda: pgd_weights.weights_table(read_rows(pgd_weights.KEPT)),
    "crs-scores": lambda: scores.scores_table(read_rows(scores.KEPT)),
    "cifar10-crs-segments": lambda: segments_table(CIFAR, CIFAR.records(), "er-c"),
    "cifar10-crs-by-segment": lambda: by_segment_table(*_lineage_crs()),
    "cifar10-pgd": lambda: segments_table(CIFAR, CIFAR.records(), "er-p"),
    "cifar10-group-norm": lambda: segments_table(
        CIFAR_GROUP_NORM, CIFAR_GROUP_NORM.records(), "er-p", "er-c"
    ),
    "readings": lambda: readings_table(MNIST, MNIST.records()),
    "mir-learner": lambda: mir_learner.learners_table(read_rows(mir_learner.KEPT)),
    "mir-misread": lambda: mir_learner.misread_share(read_rows(mir_learner.KEPT)),
    "optimizers-mnist-split": lambda: optimizers.optimizers_table(
        "mnist-split", optimizer_records()
    ),
    "optimizers-mnist-permuted": lambda: optimizers.optimizers_table(
        "mnist-permuted", optimizer_records()
    ),
    "optimizers-short": lambda: optimizers.short(optimizer_records()),
    "optimizers-longer": lambda: optimizers.longer_table(
        optimizer_records(), longer_search_records()
    ),
    "optimizers-weight": lambda: optimizers.weight_table(
        {"mnist-split": "MNIST-S", "mnist-permuted": "MNIST-P"}, optimizer_records()
    ),
}


def written(text: str, *, source: str) -> str:
    """Return a page with every block made anew.

    Raises:
        SystemExit: It has a block that nobody makes.
    """

    def fill(match: re.Match[str]) -> str:
        name = match[1]
        if name not in BLOCKS:
            sys.exit(f"{source} has a block {name!r}; known are {', '.join(BLOCKS)}.")
        return f"<!-- begin: {name} -->\n{BLOCKS[name]()}\n<!-- end: {name} -->"

    return _BLOCK.sub(fill, text)


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--check", action="store_true", help="fail instead of writing")
    check = options.parse_args().check
    stale = []
    for name in PAGES:
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        wanted = written(text, source=name)
        if wanted != text:
            stale.append(name)
            if not check:
                path.write_text(wanted, encoding="utf-8")
    if check and stale:
        sys.exit(f"{', '.join(stale)} differ from results/; run python -m studies.document")
    if not check:
        images = ROOT / "docs" / "images"
        papers = [record for record in records() if record.method in PAPER_METHODS]
        for name in ("mnist-split", "mnist-permuted"):
            own = [record for record in papers if record.benchmark == name]
            write_figure(own, "bars", images / f"{name}.png")
        split = View("mnist-split").cells(records())
        draw_forgetting(split, _DIGITS, images / "forgetting.png")
        draw_comparison(_memory_sizes(), images / "memory-sizes.png")
        draw_gains(comparisons(), lineage_comparisons(), images / "gains.png")
        draw_any_time(records(), lineage_records(), images / "any-time.png")
        draw_crs(MNIST.records(), images / "crs-memory.png")
        draw_by_segment(*_lineage_crs(), images / "crs-by-segment.png")
        draw_parts(records(), images / "pgd-parts.png")
        draw_machines(View("mnist-split"), records(), records_elsewhere(), images / "rounding.png")
        draw_passes(_passes(), images / "batch-norm.png")
        print(f"wrote {', '.join(stale) or 'nothing: all is as the records say'}")


if __name__ == "__main__":
    main()
