"""What `recollect run` prints last when it was called without arguments."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from recollect.experiments.records.record import Record
from recollect.reports.conclusion import conclude
from recollect.reports.summary import summarise_runs

_NEXT: Final = (
    ("the same with a memory of 100 examples", ("--memory", "100")),
    (
        "another stream and the paper's own method",
        ("mnist-permuted", "--method", "er", "--method", "er-p", "--seeds", "10"),
    ),
)


def show_closing(records: Sequence[Record], out: Path, *, default_out: Path) -> None:
    """Print what was seen, and two commands to try next.

    Args:
        records: The runs of the default job.
        out: The store they are in; the commands name it unless it is the default one.
        default_out: The store of a command that names none.
    """
    console = Console(highlight=False, markup=False)
    print("\nWhat you have just seen")
    for sentence in conclude(summarise_runs(records)):
        console.print(f"- {sentence}", soft_wrap=not console.is_terminal)
    print("\nTry next")
    store = () if out == default_out else ("--out", str(out))
    for purpose, words in _NEXT:
        command = shlex.join(["recollect", "run", *words, *store])
        print(f"  {command}\n      {purpose}")
