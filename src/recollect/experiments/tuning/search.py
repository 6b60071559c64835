"""A search at work: which run comes next, and what its end means.

`recollect tune` hands `more` and `note` to the function that makes runs, whoever makes them. All
that must survive is on disk before it is acted on: runs in the store, trials in the journal. So a
search that is killed goes on where it was, and several processes on one folder share its trials.
"""

import dataclasses
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

from recollect.experiments.records.record import Record
from recollect.experiments.records.scores import accuracy_and_forgetting
from recollect.experiments.records.store import Store
from recollect.experiments.running.events import Event
from recollect.experiments.specs.cell import Cell
from recollect.experiments.specs.request import Request
from recollect.experiments.tuning.choose import by_identity, finalists
from recollect.experiments.tuning.importances import importances
from recollect.experiments.tuning.journal import Journal
from recollect.experiments.tuning.plan import Plan
from recollect.experiments.tuning.study import Settings, Study, Trial, refuse_test_data
from recollect.experiments.tuning.suggest import Curve, Past, State

_LOOK_AGAIN: Final = 0.5  # seconds until the journal is read again when there was nothing to do


@dataclass
class _Active:
    """A trial that this process works on, and its runs that are over."""

    method: str
    past: Past
    records: list[Record] = field(default_factory=list)
    is_waiting: bool = False

    @property
    def is_over(self) -> bool:
        return bool(self.records) and self.records[-1].status != "done"


@dataclass(frozen=True)
class Ended:
    """A trial that is over, for whoever shows the search.

    Attributes:
        method: Whose.
        number: From 1.
        state: How it ended.
        settings: What it tried.
        value: Mean accuracy on validation data, of one that is complete.
        reason: Why it was pruned or failed.
    """

    method: str
    number: int
    state: State
    settings: Settings
    value: float | None
    reason: str | None


@final
class Search:
    """One process's part of a search.

    Args:
        plan: What is searched.
        folder: Of the search: journal and store.
        name: Of the search.
        command: That searches so.
    """

    def __init__(self, plan: Plan, folder: Path, *, name: str, command: str) -> None:
        self._name, self._command = name, command
        self.plan, self.store = plan, Store(folder)
        self.journal = Journal(folder, plan)
        #: Trials that this process finished and nobody has shown yet.
        self.ended: list[Ended] = []
        self._active: list[_Active] = []
        self._unasked: dict[str, list[Request]] = {}  # runs of finalists, by method
        self._awaited: dict[str, set[str]] = {}
        self._cells: dict[str, Cell] = {}
        self._look_again = 0.0

    def more(self) -> Sequence[Request] | None:
        """Return the next run; nothing if others have to end first, None when all is done."""
        if time.monotonic() < self._look_again:
            return []
        if (request := self._next()) is not None:
            return [request]
        is_over = not self._active and all(map(self._is_over, self.plan.methods))
        if is_over:
            return None
        self._look_again = time.monotonic() + _LOOK_AGAIN
        return []

    def note(self, event: Event) -> None:
        """Take in what happened to a run."""
        if event.kind not in ("done", "failed", "pruned"):
            return
        self._look_again = 0.0
        for awaited in self._awaited.values():
            awaited.discard(event.request.key)
        for active in self._active:
            if active.is_waiting and event.request.key == self._request(active).key:
                active.is_waiting = False

    def close(self) -> None:
        """Let go of what this process did not finish."""
        self.journal.close()

    def study(self) -> Study:
        """Return what was tried so far, with what optuna makes of it."""
        shares = {
            name: importances(search, self.journal.trials(name))
            for name, search in self.plan.methods.items()
        }
        return dataclasses.replace(
            self._tried(), importances={k: v for k, v in shares.items() if v}
        )

    def _tried(self) -> Study:
        plan = self.plan
        method, search = next(iter(plan.methods.items()))
        return Study(
            name=self._name,
            benchmark=plan.spec.benchmark,
            budget=plan.budget,
            trials={method: self._trials(method) for method in plan.methods},
            searched={name: list(search.space) for name, search in plan.methods.items()},
            inherited=plan.inherited,
            bases={name: s.base for name, s in plan.methods.items() if s.base != name},
            spec=json.loads(self._cell(method, search.example).canonical_json),
            command=self._command,
        )

    def _next(self) -> Request | None:
        """Return a run to make: of a trial at work, else of another trial, else of a finalist."""
        for active in [a for a in self._active if not a.is_waiting]:
            if (request := self._of_trial(active)) is not None:
                return request
        # The method with the fewest trials first, so that all get on alike.
        for method in sorted(self.plan.methods, key=lambda m: len(self.journal.trials(m))):
            while (past := self.journal.take(method)) is not None:
                active = _Active(method, past)
                self._active.append(active)
                if (request := self._of_trial(active)) is not None:
                    return request
        for method in self.plan.methods:
            if (request := self._of_finalists(method)) is not None:
                return request
        return None

    def _of_trial(self, active: _Active) -> Request | None:
        """Return the next run of a trial; None if there is none, and the trial is then finished.

        What the store has, of this process or of one that died, is taken from there.
        """
        while not active.is_over and len(active.records) < self.plan.budget.seeds:
            request = self._request(active)
            record = self.store.record(request)
            if record is None:
                active.is_waiting = True
                return request
            active.records.append(record)
        self._finish(active)
        return None

    def _request(self, active: _Active) -> Request:
        seed = self.plan.budget.first_seeds[len(active.records)]
        return self._asked(active.method, active.past.settings, seed, active.past.stop_below)

    def _asked(
        self, method: str, settings: Settings, seed: int, stop_below: dict[int, Curve]
    ) -> Request:
        cell = self._cell(method, settings)
        refuse_test_data([cell])
        command = self.plan.command(cell, settings, seed)
        return Request(cell, seed, command, stop_below.get(seed, ()))

    def _finish(self, active: _Active) -> None:
        self._active.remove(active)
        last = active.records[-1]
        state: State = "complete"
        if last.status != "done":
            state = "pruned" if last.status == "pruned" else "failed"
        accuracies = [accuracy_and_forgetting(r)[0] for r in active.records if r.status == "done"]
        value = sum(accuracies) / len(accuracies) if state == "complete" else None
        curves = {
            record.seed: tuple((point.seen, point.accuracy) for point in record.curve)
            for record in active.records
        }
        past = active.past
        self.journal.finish(active.method, past.number, state, value, curves)
        reason = None if last.error is None else last.error.strip().splitlines()[-1]
        ended = Ended(active.method, past.number + 1, state, past.settings, value, reason)
        self.ended.append(ended)

    def _of_finalists(self, method: str) -> Request | None:
        """Return a run of a finalist that this process has not asked for yet."""
        if method not in self._unasked:
            if not self.journal.is_over(method):
                return None
            self._unasked[method] = self._finals(method)
        unasked = self._unasked[method]
        while unasked:
            request = unasked.pop()
            if self.store.record(request) is None:
                self._awaited.setdefault(method, set()).add(request.key)
                return request
        return None

    def _finals(self, method: str) -> list[Request]:
        """Return all runs of the finalists, the last one first."""
        budget = self.plan.budget
        found = finalists(self._tried(), method, by_identity(self.store.records()))
        return [
            self._asked(method, trial.settings, seed, {})
            for seed in reversed(budget.second_seeds)
            for trial in reversed(found)
        ]

    def _is_over(self, method: str) -> bool:
        return not self._unasked.get(method, [None]) and not self._awaited.get(method)

    def _cell(self, method: str, settings: Settings) -> Cell:
        key = json.dumps([method, settings])
        if key not in self._cells:
            self._cells[key] = self.plan.cell(method, settings)
        return self._cells[key]

    def _trials(self, method: str) -> list[Trial]:
        return [
            Trial(
                method,
                past.number + 1,
                past.settings,
                self._cell(method, past.settings).spec_hash,
                past.origin,
            )
            for past in self.journal.trials(method)
        ]
