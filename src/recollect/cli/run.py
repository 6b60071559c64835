"""`recollect run`: methods on a benchmark, to a table one can trust."""

import dataclasses
import json
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

from recollect.cli.missing import show_missing
from recollect.cli.progress import display_for
from recollect.errors import ConfigError
from recollect.experiments.cell import cells
from recollect.experiments.configs import config_path
from recollect.experiments.execute import CHECKPOINT_SHARE
from recollect.experiments.machine import usable_cores
from recollect.experiments.record import Record
from recollect.experiments.request import Request, requests
from recollect.experiments.spec import Spec, load_spec
from recollect.experiments.store import Store
from recollect.experiments.sweep import Outcome, sweep
from recollect.reports.html import write_report
from recollect.reports.numbers import certainty
from recollect.reports.statistics import PairedDifference, Summary
from recollect.reports.summary import SummaryRow, summarise_runs

MAIN_JOB: Final = "mnist-split"


def run(
    benchmark: Annotated[
        str | None,
        typer.Argument(
            metavar="BENCHMARK",
            show_default=False,
            help=f"Such as {MAIN_JOB}, which is the default and needs no download.",
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method", "-m", metavar="NAME", help="A method of the spec, or `all`. Give several."
        ),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="N|A:B", help="Seeds 0 to N-1, or A to B-1.")
    ] = None,
    memory: Annotated[
        list[int] | None,
        typer.Option(min=1, metavar="SLOTS", help="Size of the memory. Give several."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Processes. Default: as many as fill the cores."),
    ] = None,
    threads: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Of each process. For runs fewer than cores."),
    ] = 1,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override, such as optimizer.lr=0.1."),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="paper, mir-official or raptormai, with its defaults."),
    ] = None,
    spec: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A spec of your own instead of the benchmark's."),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The store: records and report.")] = Path(
        "runs"
    ),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the table.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object an event, the table as the last.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be run and how long it takes.")
    ] = False,
    checkpoint_share: Annotated[float, typer.Option(hidden=True)] = CHECKPOINT_SHARE,
) -> None:
    """Run methods on a benchmark and compare them over seeds.

    Without arguments: ER against ER-PC-MIR on Split MNIST, from data in the
    package, in about a minute. Runs that the store holds are not made again.
    Stop at any time; the same command continues.
    """
    overrides = settings or []
    chosen = _spec(benchmark, spec, overrides, protocol)
    names = list(chosen.methods) if method and "all" in method else method
    wanted = requests(
        cells(chosen, methods=names, memory=memory),
        _seeds(seeds, chosen.seeds),
        spec=None if spec is None else str(spec),
        overrides=overrides,
        threads=threads,
    )
    store, workers = Store(out), workers or max(1, usable_cores() // threads)
    if dry_run:
        show_missing(wanted, store, workers=workers, is_json=as_json)
        return
    try:
        outcome, stopped_by = sweep_shown(
            wanted,
            store,
            workers=workers,
            threads=threads,
            checkpoint_share=checkpoint_share,
            is_quiet=quiet,
            is_json=as_json,
        )
    except KeyboardInterrupt:
        _say("Stopped at once; the same command continues from the last places saved.")
        raise typer.Exit(128 + signal.SIGINT) from None
    records = [record for request in wanted if (record := store.record(request)) is not None]
    _show_results(records, is_json=as_json)
    if stopped_by is not None:
        _say(f"Stopped; {_missing(wanted, store)} of {len(wanted)} runs are not done. Continue:")
        _say(f"  {shlex.join(['recollect', *sys.argv[1:]])}")
        raise typer.Exit(128 + stopped_by)
    if not as_json:
        _write_report(store, is_quiet=quiet)
    if outcome.failed:
        _say_failures(outcome.failed, store)
        raise typer.Exit(1)


def _spec(
    benchmark: str | None, path: Path | None, overrides: Sequence[str], protocol: str | None
) -> Spec:
    file = config_path(benchmark or MAIN_JOB) if path is None else path
    chosen = load_spec(file, overrides=overrides, protocol=protocol)
    if benchmark is not None and chosen.benchmark != benchmark:
        problem = f"is {chosen.benchmark!r}, the command says {benchmark!r}; leave one out."
        raise ConfigError(str(file), [("benchmark", problem)])
    return chosen


def _seeds(text: str | None, usual: int) -> range:
    """Read `N` as 0 to N-1 and `A:B` as A to B-1."""
    first, colon, last = (str(usual) if text is None else text).partition(":")
    try:
        seeds = range(int(first), int(last)) if colon else range(int(first))
    except ValueError:
        seeds = range(0)
    if not len(seeds) or seeds[0] < 0:
        raise typer.BadParameter(
            f"`--seeds` is {text!r}; write a number such as 10 for seeds 0 to 9, or 10:20 for "
            "seeds 10 to 19."
        )
    return seeds


def sweep_shown(
    wanted: Sequence[Request],
    store: Store,
    *,
    workers: int | None = None,
    threads: int = 1,
    checkpoint_share: float = CHECKPOINT_SHARE,
    is_quiet: bool = False,
    is_json: bool = False,
) -> tuple[Outcome, int | None]:
    """Make the runs that the store lacks and show how they go.

    Returns:
        How that ended, and the signal that stopped it, None if nothing did.
    """
    num_missing = _missing(wanted, store)
    with (
        _noted_signals() as received,
        display_for(wanted, num_missing, is_quiet=is_quiet, is_json=is_json) as display,
    ):

        def should_stop() -> bool:
            if received:
                display.stopping()
            return bool(received)

        outcome = sweep(
            wanted,
            store,
            workers=workers or usable_cores(),
            threads=threads,
            on_event=display.note,
            should_stop=should_stop,
            on_tick=display.tick,
            checkpoint_share=checkpoint_share,
        )
    return outcome, received[0] if outcome.was_stopped else None


@contextmanager
def _noted_signals() -> Iterator[list[int]]:
    """Collect Ctrl-C and SIGTERM; a second one ends at once, which loses no more than a kill."""
    received: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        if number in received:
            raise KeyboardInterrupt
        received.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _missing(wanted: Sequence[Request], store: Store) -> int:
    return sum(not store.is_done(request) for request in wanted)


# --- results --------------------------------------------------------------------------------------


def _show_results(records: Sequence[Record], *, is_json: bool) -> None:
    rows = summarise_runs(records)
    if is_json:
        told = {"event": "summary", "rows": [dataclasses.asdict(row) for row in rows]}
        print(json.dumps(told), flush=True)
    elif rows:
        console = Console()
        console = console if console.is_terminal else Console(width=120)
        console.print(results_table(rows))
        if mixture := _mixture(records):
            console.print(mixture, style="yellow", highlight=False)


def results_table(rows: Sequence[SummaryRow]) -> Table:
    """Draw the comparison: means with their intervals, and paired differences."""
    first = rows[0]
    has_pairs = any(row.difference is not None for row in rows)
    about = (
        f"{first.benchmark}, protocol {first.protocol}. Per cent; mean over n seeds, sd over "
        "seeds, 95 % interval of the mean (Student's t). Forgetting as cited by the paper."
    )
    if has_pairs:
        about += (
            " Difference: accuracy less the baseline's on the same seeds; p of an exact sign-flip "
            "test (paired t above 16 seeds), Holm-corrected over the table."
        )
    table = Table(title=None, caption=about, caption_justify="left", box=None, pad_edge=False)
    table.add_column("method", style="bold")
    for heading in ("memory", "n", "accuracy", "sd", "95 % interval", "forgetting"):
        table.add_column(heading, justify="right", no_wrap=True)
    if has_pairs:
        table.add_column(f"less {first.baseline} (95 % interval)", justify="right", no_wrap=True)
        table.add_column("p", justify="right", no_wrap=True)
    for row in rows:
        accuracy, lost = row.accuracy, row.forgetting
        values = [
            row.method,
            str(row.capacity or "-"),
            str(accuracy.n),
            _percent(accuracy.mean),
            _percent(accuracy.sd),
            _interval(accuracy),
            _percent(lost.mean),
        ]
        if has_pairs:
            values += [_signed(row.difference), _p_value(row.difference)]
        table.add_row(*values)
    return table


def _mixture(records: Sequence[Record]) -> str | None:
    """Say so if the runs were not all made by the same code."""
    made_by = {(run.commit, *sorted(run.versions.items())) for run in records}
    if len(made_by) < 2:
        return None
    return (
        f"Careful: these runs were made by {len(made_by)} different states of the code (columns "
        "`commit` and `versions`). For runs that all come from one, choose another --out."
    )


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def _interval(summary: Summary) -> str:
    if summary.low is None or summary.high is None:
        return "-"
    return f"{100 * summary.low:.1f} to {100 * summary.high:.1f}"


def _signed(difference: PairedDifference | None) -> str:
    if difference is None or difference.summary is None:
        return ""
    summary = difference.summary
    mean = f"{100 * summary.mean:+.1f}"
    if summary.low is None or summary.high is None:
        return f"{mean} (n=1)"
    return f"{mean} ({100 * summary.low:+.1f} to {100 * summary.high:+.1f})"


def _p_value(difference: PairedDifference | None) -> str:
    return "" if difference is None else certainty(difference)


def _write_report(store: Store, *, is_quiet: bool) -> None:
    path = store.root / "report.html"
    write_report(store.records(), path)
    if not is_quiet:
        print(f"\nreport: {path}")


def _say_failures(failed: Sequence[Request], store: Store) -> None:
    _say(f"{len(failed)} of the runs failed; the others are done.")
    for request in failed:
        record = store.record(request)
        reason = (record.error if record is not None else None) or "no reason given"
        last_line = reason.strip().splitlines()[-1]
        _say(f"  {request.cell.method} seed {request.seed}: {last_line}")
        _say(f"    again: {request.command} --out {shlex.quote(str(store.root))}")
    _say(f"Their tracebacks are in {store.root / 'records'}, column `error`.")


def _say(line: str) -> None:
    print(line, file=sys.stderr)
