"""How soon does the command answer?

CPU seconds of whole processes, beside Python that does nothing; contestants alternate. Sizes of
reports are those of the committed results.

    python -m perf.command
"""

import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from perf.asking.answer import Answer, Table, lines_of, ratio
from perf.asking.measuring import alternate

ROOT: Final = Path(__file__).parents[1]
_NOTHING: Final = "python -c pass"
_ANSWERS: Final = {
    "recollect --help": ("--help",),
    "recollect data list": ("data", "list"),
    "recollect methods": ("methods",),
    "recollect tune --help": ("tune", "--help"),
    "a mistake in a spec": ("run", "--set", "optimizer.lrr=1"),
    "a mistake in a search": ("tune", "mnist-split", "--set", "tune.trils=3"),
    "10^8 seeds, --dry-run": ("run", "--seeds", "100000000", "--dry-run"),
    "recollect paper table1 --no-run": ("paper", "table1", "--no-run", "--store", "results"),
    "recollect report results": ("report", "results", "-o"),
}
_ALL_RECORDS: Final = ("recollect paper table1 --no-run", "recollect report results")


def child_seconds(command: Sequence[str]) -> float:
    """Return the CPU seconds of a process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=False, cwd=ROOT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(*, repetitions: int = 5, names: Sequence[str] = tuple(_ANSWERS)) -> Answer:
    """Alternate what the command is asked, and Python that does nothing."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        blocks = {_NOTHING: partial(child_seconds, [sys.executable, "-c", "pass"])}
        for name in names:
            words = [*_ANSWERS[name], *([str(page)] if name == _ALL_RECORDS[1] else [])]
            blocks[name] = partial(child_seconds, [sys.executable, "-m", "recollect", *words])
        times = alternate(blocks, repetitions, told="the command")
        size = page.stat().st_size / 1e6 if page.exists() else None
    ratios = [ratio(name, _NOTHING, "command", times) for name in names]
    tables = [] if size is None else [Table("The report of results/", ["MB"], [[size]])]
    return Answer(
        "How soon the command answers",
        "python -m perf.command",
        {"repetitions": repetitions},
        unit="CPU s",
        times=times,
        ratios=ratios,
        tables=tables,
    )


if __name__ == "__main__":
    print("\n".join(lines_of(measure())))
