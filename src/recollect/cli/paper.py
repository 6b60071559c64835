"""`recollect paper`: the paper's tables and figures, its numbers beside ours."""

import signal
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from recollect.cli.terminal.output import FIGURES, check_output, write_explained
from recollect.errors import RecollectError
from recollect.experiments.executors.workforce import Workforce
from recollect.experiments.records.record import Record
from recollect.experiments.running.machine import MOST_WORKERS, usable_cores
from recollect.experiments.specs.request import MOST_SEED, Request
from recollect.paper.cells import cells_for, requests_for
from recollect.paper.formats import as_csv, as_latex, as_markdown, as_terminal, tally
from recollect.paper.numbers import CAPACITY, EXHIBITS, PAPER_SEEDS, Exhibit
from recollect.paper.tables import (
    Comparison,
    WantedCell,
    compare,
    exhibit_named,
    limited,
    wanted_cells,
)
from recollect.reports.reading import read_store


class Format(StrEnum):
    """How a comparison is printed."""

    TERMINAL = "terminal"
    MARKDOWN = "markdown"
    LATEX = "latex"
    CSV = "csv"


_BY_ENDING: Final = {
    ".md": Format.MARKDOWN,
    ".tex": Format.LATEX,
    ".csv": Format.CSV,
    ".txt": Format.TERMINAL,
}


def paper(
    exhibits: Annotated[
        list[str], typer.Argument(help=f"Any of {', '.join(EXHIBITS)}, or all.", metavar="WHAT")
    ],
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, max=MOST_SEED, help="Seeds 0 to N-1. Default: 10 to run, all there are to print."
        ),
    ] = None,
    benchmark: Annotated[
        list[str] | None,
        typer.Option("--benchmark", help="Only this part of each; may be repeated."),
    ] = None,
    store: Annotated[Path, typer.Option(help="Where the records are kept.")] = Path("runs"),
    workers: Annotated[
        int | None, typer.Option(min=1, max=MOST_WORKERS, help="Runs at the same time.")
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="CLUSTER",
            help="dask, or the address or file of a dask scheduler. Default: processes here.",
        ),
    ] = None,
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="Begin what is not done anew, with the source of today."),
    ] = False,
    shape: Annotated[
        Format | None,
        typer.Option("--format", help="How to print. Default: terminal, or as the output ends."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write there instead: .md, .tex, .csv or .txt; .png, .svg or .pdf draws.",
        ),
    ] = None,
    run: Annotated[bool, typer.Option(help="Run what is missing first.")] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what is missing and how long it takes.")
    ] = False,
) -> None:
    """Put the paper's tables and figures beside ours and judge each ordering it claims.

    What the store lacks is run first. Stop at any time; the same command
    continues. A claim holds if the paired difference over common seeds points
    its way with p < 5 % after Holm's correction.
    """
    wanted = _wanted(exhibits, benchmark or list(CAPACITY))
    # Before hours of runs: what cannot be written is said now.
    written_as = None if output is None else _format_of(output, shape, len(wanted))
    num_failed = 0
    to_run = range(PAPER_SEEDS if seeds is None else seeds)
    if dry_run:
        from recollect.cli.terminal.missing import show_missing

        asked_cells = cells_for(_cells(wanted))
        show_missing(asked_cells, to_run, store, workers=workers, on=on, is_fresh=fresh)
        return
    if run:
        asked = requests_for(_cells(wanted), to_run)
        workforce = Workforce(workers or usable_cores(), on=on)
        num_failed = _run_missing(asked, store, workforce, is_fresh=fresh)
    records = _within(read_store(store), seeds)
    comparisons = [compare(exhibit, records) for exhibit in wanted]
    if output is not None:
        _write(comparisons, written_as, output)
    elif shape is None or shape is Format.TERMINAL:
        console = Console()
        # Piped into a file or another command, a row stays a row.
        _show(comparisons, console if console.is_terminal else Console(width=140))
    else:
        print(_as_text(comparisons, shape), end="")
    if num_failed:
        print(
            f"{num_failed} runs failed and are not in the table; `recollect report {store}` shows "
            "why.",
            file=sys.stderr,
        )
        raise typer.Exit(1)


def _format_of(output: Path, asked: Format | None, num_exhibits: int) -> Format | None:
    """Tell from its ending how the output is written, None for a picture.

    Raises:
        RecollectError: The output cannot be written, or it is to be of another format than asked.
    """
    ending = output.suffix.lower()
    if not ending and asked is not None:
        check_output(output)
        return asked
    check_output(output, (*_BY_ENDING, *FIGURES))
    chosen = _BY_ENDING.get(ending)
    if asked not in (None, chosen):
        raise RecollectError(
            f"`--format` is {asked}, but `{output}` ends in {ending!r}; leave `--format` out, or "
            "change the ending."
        )
    if chosen is None and num_exhibits != 1:
        raise typer.BadParameter("a picture shows one table or figure; name one.")
    return chosen


def _wanted(names: list[str], benchmarks: list[str]) -> list[Exhibit]:
    unknown = [name for name in benchmarks if name not in CAPACITY]
    if unknown:
        known = ", ".join(CAPACITY)
        raise typer.BadParameter(f"`--benchmark` is {unknown[0]!r}; the paper has {known}.")
    try:
        chosen = [exhibit_named(name) for name in (EXHIBITS if "all" in names else names)]
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    parts = [limited(exhibit, benchmarks) for exhibit in dict.fromkeys(chosen)]
    if not any(part.cells for part in parts):
        raise typer.BadParameter(f"nothing of {', '.join(names)} is about {benchmarks[0]}.")
    return [part for part in parts if part.cells]


def _within(records: list[Record], seeds: int | None) -> list[Record]:
    return [record for record in records if seeds is None or 0 <= record.seed < seeds]


def _cells(wanted: list[Exhibit]) -> list[WantedCell]:
    return list(dict.fromkeys(cell for exhibit in wanted for cell in wanted_cells(exhibit)))


def _run_missing(asked: list[Request], store: Path, workforce: Workforce, *, is_fresh: bool) -> int:
    """Make the runs that the store lacks, shown as `recollect run` shows them; count failures."""
    # Torch takes its time to import; a table of what is there does without it.
    from recollect.cli.terminal.sweeping import Wishes, sweep_shown
    from recollect.experiments.records.store import Store

    try:
        outcome, stopped_by = sweep_shown(asked, Store(store), Wishes(workforce, is_fresh=is_fresh))
    except KeyboardInterrupt:
        stopped_by = int(signal.SIGINT)
    if stopped_by is not None:
        print("Stopped; the same command continues.", file=sys.stderr)
        raise typer.Exit(128 + stopped_by)
    return len(outcome.failed)


def _as_text(comparisons: list[Comparison], shape: Format) -> str:
    if shape is Format.CSV:
        return as_csv(comparisons)
    if shape is Format.LATEX:
        return "\n".join(as_latex(comparison) for comparison in comparisons)
    if shape is Format.MARKDOWN:
        return "\n".join(as_markdown(comparison) for comparison in comparisons)
    console = Console(width=140, no_color=True)
    with console.capture() as captured:
        _show(comparisons, console)
    return captured.get()


def _show(comparisons: list[Comparison], console: Console) -> None:
    for comparison in comparisons:
        console.print(as_terminal(comparison), highlight=False)
    if len(comparisons) > 1:
        console.print(tally(comparisons), highlight=False)


def _write(comparisons: list[Comparison], shape: Format | None, output: Path) -> None:
    with write_explained(output):
        if shape is not None:
            output.write_text(_as_text(comparisons, shape), encoding="utf-8")
        else:
            # matplotlib takes its time to import; only a picture needs it.
            from recollect.paper.figures import draw_comparison

            draw_comparison(comparisons[0], output)
    print(f"wrote {output}")
