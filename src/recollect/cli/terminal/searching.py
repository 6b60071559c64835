"""A search carried out, shown, and written down."""

import signal
from dataclasses import dataclass
from pathlib import Path

from recollect.atomic_files import write_text
from recollect.cli.terminal.output import write_explained
from recollect.cli.terminal.sweeping import noted_signals
from recollect.cli.terminal.tuning import SearchDisplay, say, show_found
from recollect.errors import RecollectError
from recollect.experiments.executors.workforce import Workforce
from recollect.experiments.running.events import Event
from recollect.experiments.running.sweep import sweep
from recollect.experiments.specs.build import build
from recollect.experiments.tuning.best import best_spec
from recollect.experiments.tuning.choose import by_identity, chosen, standings
from recollect.experiments.tuning.plan import Plan
from recollect.experiments.tuning.search import Search
from recollect.experiments.tuning.study import write_study
from recollect.reports.tuning.html import write_html
from recollect.reports.tuning.markdown import write_markdown


@dataclass(frozen=True)
class Manner:
    """How a search is made and shown.

    Attributes:
        workforce: Who makes runs.
        is_fresh: Whether what comes is made with the code of today, whatever the search began with.
        is_quiet: Only the result.
        is_json: One JSON object per event.
    """

    workforce: Workforce
    is_fresh: bool = False
    is_quiet: bool = False
    is_json: bool = False


def carry_out_search(
    plan: Plan, folder: Path, manner: Manner, *, name: str, command: str
) -> int | None:
    """Search, print the result, and write spec, page and study into the folder.

    Args:
        plan: What to search.
        folder: Where journal, records and results are.
        manner: How it is made and shown.
        name: Of the search and of its files.
        command: That searches so.

    Returns:
        The signal that stopped it, None if it came to its end.
    """
    _try_one_batch(plan)
    search = Search(plan, folder, name=name, command=command)
    try:
        stopped_by = _make(search, manner)
    except KeyboardInterrupt:
        return int(signal.SIGINT)
    finally:
        search.close()
    if stopped_by is None:
        write_results(search, folder, name=name, manner=manner)
    return stopped_by


def write_results(search: Search, folder: Path, *, name: str, manner: Manner) -> None:
    """Print what was chosen, and write `best.toml` and the pages."""
    study, kept = search.study(), by_identity(search.store.records())
    found = {method: standings(study, method, kept) for method in study.trials}
    own = {trial.spec_hash for rows in study.trials.values() for trial in rows}
    kept = {identity: record for identity, record in kept.items() if identity[0] in own}
    best = {m: standing for m, rows in found.items() if (standing := chosen(rows)) is not None}
    spec = None
    with write_explained(folder / "best.toml"):
        if len(best) == len(found):
            spec = best_spec(search.plan, study, best, name=str(folder / "best.toml"))
            write_text(folder / "best.toml", spec)
        write_study(study, folder / f"{name}.json")
        write_html(study, found, kept, folder / "tuning.html", spec=spec)
        write_markdown(study, found, kept, folder / name)
    show_found(found, is_json=manner.is_json)
    if spec is None:
        nothing = ", ".join(method for method in found if method not in best)
        say(f"Nothing could be chosen for {nothing}: every trial failed. The page says why.")
    if not (manner.is_json or manner.is_quiet):
        written = [*(["best.toml"] if spec else []), "tuning.html"]
        print("\n" + "\n".join(f"wrote {folder / file}" for file in written))


def _make(search: Search, manner: Manner) -> int | None:
    with (
        noted_signals() as received,
        SearchDisplay(search, is_quiet=manner.is_quiet, is_json=manner.is_json) as display,
    ):

        def should_stop() -> bool:
            if received:
                display.stopping()
            return bool(received)

        def note(event: Event) -> None:
            search.note(event)
            display.note(event)

        outcome = sweep(
            search.more,
            search.store,
            manner.workforce,
            is_fresh=manner.is_fresh,
            on_event=note,
            on_notice=say,
            should_stop=should_stop,
            on_tick=display.tick,
        )
        display.tick()
    return received[0] if outcome.was_stopped else None


def _try_one_batch(plan: Plan) -> None:
    """Learn one batch: what is wrong with data or model is told at once, not trial by trial."""
    method, search = next(iter(plan.methods.items()))
    try:
        cell, seed = plan.cell(method, search.example), plan.budget.first_seeds[0]
        benchmark, learner = build(cell, seed)
        if any(not len(segment.validation_indices) for segment in benchmark.segments):
            raise RecollectError(
                f"{plan.spec.benchmark} has segments without validation examples; set "
                "stream.validation_per_segment to a number above 0."
            )
        learner.observe(*next(benchmark.stream))
    except RecollectError:
        raise
    except Exception as error:  # of a model, a part or data of the user's, which may raise anything
        told = f"{type(error).__name__}: {error}"
        raise RecollectError(f"one batch cannot be learnt, so no trial could: {told}") from error
