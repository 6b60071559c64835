"""What a person or a machine sees of a search for settings."""

import json
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from recollect.cli.terminal.progress import duration
from recollect.experiments.running.events import Event
from recollect.experiments.specs.request import Request
from recollect.experiments.tuning.choose import Standing, chosen
from recollect.experiments.tuning.journal import trials_there
from recollect.experiments.tuning.plan import Plan
from recollect.experiments.tuning.search import Ended, Search
from recollect.experiments.tuning.spaces.space import range_in_words
from recollect.reports.tuning.markdown import settings_in_words, stage_in_words

_MOST_ROWS = 12


class SearchDisplay:
    """Shows a search while it goes on, inside a `with` block.

    Args:
        search: What to show.
        is_quiet: Only what fails.
        is_json: One JSON object per event.
    """

    def __init__(self, search: Search, *, is_quiet: bool, is_json: bool) -> None:
        self._search, self._is_json, self._is_quiet = search, is_json, is_quiet
        self._console = Console(stderr=True, markup=False)
        self._best: dict[str, float] = {}
        self._running: dict[str, Event] = {}
        self._start = time.monotonic()
        self._is_stopping = False
        is_live = self._console.is_terminal and not (is_json or is_quiet)
        live = Live(console=self._console, transient=True, auto_refresh=False)
        self._live = live if is_live else None

    def __enter__(self) -> "SearchDisplay":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def note(self, event: Event) -> None:
        """Show what happened to a run, and to the trial it ended."""
        if event.kind in ("started", "progress"):
            self._running[event.request.key] = event
        elif event.kind != "anew":
            self._running.pop(event.request.key, None)
        if self._is_json:
            print(json.dumps(event.facts()), flush=True)
        elif event.kind == "died":
            self._say(f"lost a worker: {_name(event.request)}: {event.message}", style="red")
        elif event.kind == "done" and event.accuracy is not None and self._is_final(event.request):
            self._tell(f"{_name(event.request)}: {event.accuracy:.1%} (finalist)")

    def tick(self) -> None:
        """Show trials that ended since, and what runs."""
        while self._search.ended:
            self._show(self._search.ended.pop(0))
        if self._live is not None:
            self._live.update(self._status(), refresh=True)

    def stopping(self) -> None:
        """Say that runs are saving their place."""
        if not self._is_stopping:
            self._tell("stopping: each run saves its place")
        self._is_stopping = True

    def _show(self, ended: Ended) -> None:
        of_all = f"{ended.method} {ended.number}/{self._search.plan.budget.trials}"
        if self._is_json:
            facts: dict[str, Any] = {"event": "trial", **vars(ended)}
            print(json.dumps(facts), flush=True)
            return
        settings = settings_in_words(ended.settings)
        if ended.value is None:
            style = "red" if ended.state == "failed" else ""
            self._tell(f"{of_all}  {settings}: {ended.reason}", style=style)
            return
        before = self._best.get(ended.method)
        self._best[ended.method] = max(ended.value, before or 0.0)
        mark = "" if before is None or ended.value <= before else "  best so far"
        self._tell(f"{of_all}  {ended.value:.1%}  {settings}{mark}")

    def _status(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim")
        for heading in ("running", "seed", "segment", "accuracy"):
            table.add_column(heading, justify="left" if heading == "running" else "right")
        for event in list(self._running.values())[:_MOST_ROWS]:
            accuracy = "" if event.accuracy is None else f"{event.accuracy:.1%}"
            segment = "" if event.segment is None else f"{event.segment}/{event.num_segments}"
            table.add_row(event.request.cell.method, str(event.request.seed), segment, accuracy)
        if not self._running:
            table.add_row(Text("starting workers, or waiting for other processes", style="dim"))
        state = "stopping" if self._is_stopping else duration(time.monotonic() - self._start)
        table.caption = state
        return table

    def _is_final(self, request: Request) -> bool:
        return request.seed in self._search.plan.budget.second_seeds

    def _tell(self, line: str, *, style: str = "") -> None:
        if not (self._is_quiet or self._is_json):
            self._say(line, style=style)

    def _say(self, line: str, *, style: str = "") -> None:
        console = self._console if self._live is None else self._live.console
        console.print(line, style=style, highlight=False, markup=False, soft_wrap=True)


def show_plan(plan: Plan, folder: Path, *, is_json: bool) -> None:
    """Print what a search would try: ranges, known settings, and how many runs at most."""
    done = trials_there(plan, folder)
    budget = plan.budget
    most = budget.trials * budget.seeds + budget.finalists * budget.fresh_seeds
    if is_json:
        rows = [
            {
                "method": name,
                "space": {key: range_in_words(looked) for key, looked in search.space.items()},
                "known": list(search.known),
                "trials": budget.trials,
                "trials_there": done.get(name, 0),
                "most_runs": most,
            }
            for name, search in plan.methods.items()
        ]
        print(json.dumps({"event": "plan", "rows": rows}))
        return
    for name, search in plan.methods.items():
        print(f"{name}: {budget.trials} trials, {done.get(name, 0)} of them there")
        for key, looked in search.space.items():
            print(f"  {key}: {range_in_words(looked)}")
        for settings in search.known:
            print(f"  tried first: {settings_in_words(settings)}")
    print(
        f"At most {most * len(plan.methods)} runs: {budget.trials} trials on {budget.seeds} seeds "
        f"and {budget.finalists} finalists on {budget.fresh_seeds} fresh seeds, for each of "
        f"{len(plan.methods)} methods{', fewer as runs are pruned' if plan.prune else ''}."
    )


def show_found(found: dict[str, list[Standing]], *, is_json: bool) -> None:
    """Print the chosen trial of each method."""
    if is_json:
        facts = [
            {
                "method": method,
                "trial": best.trial.number,
                "settings": best.trial.settings,
                "accuracies": (best.fresh.accuracies or best.first.accuracies),
            }
            for method, rows in found.items()
            if (best := chosen(rows)) is not None
        ]
        print(json.dumps({"event": "best", "rows": facts}))
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("method", "trial", "accuracy on validation data, %", "settings"):
        table.add_column(heading)
    for method, rows in found.items():
        best = chosen(rows)
        if best is None:
            table.add_row(method, "", "nothing chosen", "")
            continue
        judged = best.fresh if best.fresh.accuracies else best.first
        table.add_row(
            method,
            str(best.trial.number),
            stage_in_words(judged),
            settings_in_words(best.trial.settings),
        )
    console = Console(markup=False)
    console = console if console.is_terminal else Console(width=140, markup=False)
    console.print(table, highlight=False)


def say(line: str) -> None:
    """Print beside the results."""
    print(line, file=sys.stderr)


def _name(request: Request) -> str:
    return f"{request.cell.method} seed {request.seed}"
