"""`recollect run`: methods on a benchmark, to a table one can trust."""

import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Final

import typer

from recollect.cli.missing import show_missing
from recollect.cli.output import write_explained
from recollect.cli.progress import display_for
from recollect.cli.results import show_results
from recollect.errors import ConfigError, RecollectError
from recollect.experiments.cell import cells
from recollect.experiments.configs import config_path
from recollect.experiments.execute import CHECKPOINT_SHARE
from recollect.experiments.machine import usable_cores
from recollect.experiments.request import Request, requests
from recollect.experiments.spec import Spec, load_spec
from recollect.experiments.store import Store
from recollect.experiments.sweep import Outcome, sweep
from recollect.reports.html import write_report

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
    show_results(records, is_json=as_json)
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


def _write_report(store: Store, *, is_quiet: bool) -> None:
    path, records = store.root / "report.html", store.records()
    try:
        with write_explained(path):
            write_report(records, path)
    except RecollectError as error:  # what was asked for, the runs and the table, is there
        again = shlex.join(["recollect", "report", str(store.root), "-o"])
        _say(f"warning: no page: {error} `{again} FILE` writes it where you like.")
        return
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
