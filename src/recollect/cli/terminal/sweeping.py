"""Runs made and shown: what `recollect run` and `recollect paper` do once they know what to run."""

import shlex
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import typer

from recollect.cli.terminal.closing import show_closing
from recollect.cli.terminal.output import write_explained
from recollect.cli.terminal.progress import display_for
from recollect.cli.terminal.results import show_results
from recollect.errors import RecollectError
from recollect.experiments.executors.workforce import Workforce
from recollect.experiments.records.store import Store
from recollect.experiments.running.events import Event
from recollect.experiments.running.fresh import made_by_other_code
from recollect.experiments.running.sweep import Outcome, sweep
from recollect.experiments.specs.request import Request
from recollect.experiments.tracking.tracks import Tracks
from recollect.reports.html import write_report
from recollect.reports.reading import links_to_code
from recollect.trackers import Tracker


@dataclass(frozen=True)
class Wishes:
    """How runs are made and shown.

    Attributes:
        workforce: Who makes them.
        is_fresh: Whether what is not done begins anew, with the code of today.
        is_quiet: Only the table.
        is_json: One JSON object per event.
        trackers: Classes of trackers, by the name of the folder that each gets.
    """

    workforce: Workforce
    is_fresh: bool = False
    is_quiet: bool = False
    is_json: bool = False
    trackers: Mapping[str, type[Tracker]] = field(default_factory=dict)


def carry_out(
    wanted: Sequence[Request], out: Path, wishes: Wishes, *, closes_for: Path | None
) -> None:
    """Make runs, and print and write what came out.

    Args:
        wanted: The runs.
        out: The folder of the store.
        wishes: How they are made and shown.
        closes_for: The store of the default job, if these are its runs: it closes with sentences.

    Raises:
        typer.Exit: They were stopped, or some failed.
    """
    store = Store(out)
    tracks = Tracks(wishes.trackers, store) if wishes.trackers else None
    try:
        outcome, stopped_by = sweep_shown(wanted, store, wishes, tracks=tracks)
    except KeyboardInterrupt:
        _say("Stopped at once; the same command continues from the last places saved.")
        raise typer.Exit(128 + signal.SIGINT) from None
    finally:
        if tracks is not None:
            _say_untracked(tracks)
    records = [record for request in wanted if (record := store.record(request)) is not None]
    show_results(records, is_json=wishes.is_json)
    if stopped_by is not None:
        _say(f"Stopped; {_missing(wanted, store)} of {len(wanted)} runs are not done. Continue:")
        _say(f"  {shlex.join(['recollect', *sys.argv[1:]])}")
        raise typer.Exit(128 + stopped_by)
    if not wishes.is_json:
        _write_report(store, is_quiet=wishes.is_quiet)
    is_silent = wishes.is_json or wishes.is_quiet or bool(outcome.failed)
    if closes_for is not None and not is_silent:
        show_closing(records, out, default_out=closes_for)
    if outcome.failed:
        _say_failures(outcome.failed, store)
        raise typer.Exit(1)


def sweep_shown(
    wanted: Sequence[Request],
    store: Store,
    wishes: Wishes,
    *,
    tracks: Tracks | None = None,
) -> tuple[Outcome, int | None]:
    """Make the runs that the store lacks and show how they go.

    Returns:
        How that ended, and the signal that stopped it, None if nothing did.
    """
    num_missing = _missing(wanted, store)
    if wishes.is_fresh:
        num_missing += len(made_by_other_code(wanted, store))
    if tracks is not None:
        tracks.catch_up(wanted)
    with (
        closing(tracks) if tracks is not None else nullcontext(),
        noted_signals() as received,
        display_for(
            wanted, num_missing, is_quiet=wishes.is_quiet, is_json=wishes.is_json
        ) as display,
    ):

        def should_stop() -> bool:
            if received:
                display.stopping()
            return bool(received)

        def note(event: Event) -> None:
            if tracks is not None:
                tracks.note(event)
            display.note(event)

        outcome = sweep(
            wanted,
            store,
            wishes.workforce,
            is_fresh=wishes.is_fresh,
            on_event=note,
            should_stop=should_stop,
            on_notice=display.notice,
            on_tick=display.tick,
        )
    return outcome, received[0] if outcome.was_stopped else None


@contextmanager
def noted_signals() -> Iterator[list[int]]:
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
            write_report(records, path, code=links_to_code(store.root, path))
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


def _say_untracked(tracks: Tracks) -> None:
    """Name what trackers did not get, and what to do."""
    for kind, error in tracks.trouble.items():
        _say(f"warning: tracker {kind} raised {type(error).__name__}: {error}")
        _say("  It got nothing more. The runs went on; the same command writes the rest.")
    if tracks.untold:
        several = tracks.untold > 1
        runs = f"{tracks.untold} runs were" if several else "1 run was"
        them = "them" if several else "it"
        _say(f"warning: {runs} done before without --track; trackers have nothing of {them}.")


def _say(line: str) -> None:
    print(line, file=sys.stderr)
