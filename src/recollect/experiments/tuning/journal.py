"""The trials of a search in one file that any number of processes and machines append to.

It is optuna's journal, one study per method, so optuna's own tools open it. What is ours: who works
on which trial is a lock that the kernel drops when a process dies, so that another one takes the
trial up at once; and a trial is added with all its settings in one line, or not at all.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, final

from recollect.atomic_files import locked
from recollect.errors import ConfigError, RecollectError
from recollect.experiments.tuning.locks import AppendLock, Claims
from recollect.experiments.tuning.optional import optuna
from recollect.experiments.tuning.plan import Plan, Searched
from recollect.experiments.tuning.pruning import bars
from recollect.experiments.tuning.suggest import (
    Curve,
    Past,
    State,
    distributions_of,
    suggest,
    visible,
)

FILE: Final = "journal.log"
_SEARCH: Final = "search"


@final
class Journal:
    """The journal of a search.

    Args:
        folder: Of the search; it is made.
        plan: What is searched.

    Raises:
        ConfigError: The folder holds another search.
        RecollectError: The file is damaged.
    """

    def __init__(self, folder: Path, plan: Plan) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._plan = folder, plan
        self._claims = Claims(folder / "claims" / "trials")
        path = folder / FILE
        backend = optuna().storages.journal.JournalFileBackend(str(path), AppendLock(path))
        try:
            self._storage = optuna().storages.JournalStorage(backend)
            with locked(folder / "search.lock"):
                self._studies = {name: self._study(s) for name, s in plan.methods.items()}
        except (ValueError, KeyError, AssertionError) as error:
            if isinstance(error, RecollectError):
                raise
            raise RecollectError(
                f"`{path}` is damaged ({error!r}); move it away and give the command again. "
                "Finished runs are in the records beside it and are not made again."
            ) from error

    def _study(self, search: Searched) -> Any:
        study = optuna().create_study(
            study_name=search.name,
            storage=self._storage,
            direction="maximize",
            load_if_exists=True,
        )
        before = study.user_attrs.get(_SEARCH)
        if before is None:
            study.set_user_attr(_SEARCH, search.fingerprint)
        elif before != search.fingerprint:
            told = (
                f"was searched for in another way in {self._folder}: with other settings of the "
                "spec, ranges, known settings, seeds, ahead or prune. Give the earlier ones, or "
                "choose another folder with --out."
            )
            raise ConfigError(str(self._plan.wanted.file), [(f"methods.{search.name}", told)])
        return study

    def trials(self, method: str) -> list[Past]:
        """Return the trials of a method by number."""
        found = self._studies[method].get_trials(deepcopy=False)
        return sorted((_past(trial) for trial in found), key=lambda past: past.number)

    def is_over(self, method: str) -> bool:
        """Whether all trials of a method are over."""
        trials = self.trials(method)
        enough = len(trials) >= self._plan.budget.trials
        return enough and not any(trial.state == "running" for trial in trials)

    def take(self, method: str) -> Past | None:
        """Return a trial for this process to work on: one that nobody does any more, or a new one.

        None if there is none for now: the trials that suggest the next one are running elsewhere,
        or all are there.
        """
        with locked(self._folder / "search.lock"):
            trials = self.trials(method)
            for trial in trials:
                if trial.state == "running" and self._claims.take(_name(method, trial.number)):
                    return trial
            number = len(trials)
            seen = visible(trials, number, self._plan.ahead)
            if number >= self._plan.budget.trials or seen is None:
                return None
            self._claims.take(_name(method, number))
            self._add(method, number, seen, trials)
            return self.trials(method)[number]

    def _add(self, method: str, number: int, seen: list[Past], trials: list[Past]) -> None:
        plan, search = self._plan, self._plan.methods[method]
        settings, origin = suggest(
            search, number, seen=seen, all_before=trials, trials=plan.budget.trials
        )
        stop_below = bars(seen, plan.budget.first_seeds) if plan.prune else {}
        self._studies[method].add_trial(
            optuna().trial.create_trial(
                state=optuna().trial.TrialState.RUNNING,
                params=settings,
                distributions=distributions_of(search.space),
                user_attrs={"origin": origin, "stop_below": stop_below},
            )
        )

    def finish(
        self, method: str, number: int, state: State, value: float | None, curves: dict[int, Curve]
    ) -> None:
        """Write how a trial of this process ended, and let go of it.

        Args:
            method: Whose trial.
            number: Which one.
            state: How it ended.
            value: Its mean accuracy, if it is complete.
            curves: Any-time accuracy of its runs, by seed.
        """
        study, states = self._studies[method], optuna().trial.TrialState
        study_id = self._storage.get_study_id_from_name(method)
        get_id: Callable[[int, int], int] = (
            self._storage.get_trial_id_from_study_id_trial_number  # its only public way
        )
        trial = optuna().trial.Trial(study, get_id(study_id, number))
        trial.set_user_attr("curves", curves)
        known = study.get_trials(deepcopy=False)[number].intermediate_values
        steps = (accuracy for curve in curves.values() for _, accuracy in curve)
        for step, accuracy in enumerate(steps):
            if step not in known:  # of a process that was killed while it wrote them
                trial.report(accuracy, step)
        ends = {"complete": states.COMPLETE, "pruned": states.PRUNED, "failed": states.FAIL}
        study.tell(trial, value if state == "complete" else None, state=ends[state])
        self._claims.drop(_name(method, number))

    def close(self) -> None:
        """Let go of the trials that this process did not finish."""
        self._claims.drop_all()


def trials_there(plan: Plan, folder: Path) -> dict[str, int]:
    """Count the trials that a folder has of each method, without writing to it."""
    if not (folder / FILE).exists():
        return {}
    journal = Journal(folder, plan)
    return {method: len(journal.trials(method)) for method in plan.methods}


def _name(method: str, number: int) -> str:
    return f"{method}-{number}"


def _past(trial: Any) -> Past:
    states = optuna().trial.TrialState
    ends: dict[Any, State] = {
        states.COMPLETE: "complete",
        states.PRUNED: "pruned",
        states.FAIL: "failed",
    }
    return Past(
        trial.number,
        dict(trial.params),
        trial.user_attrs["origin"],
        ends.get(trial.state, "running"),
        trial.value if trial.state == states.COMPLETE else None,
        _curves(trial.user_attrs.get("curves", {})),
        _curves(trial.user_attrs["stop_below"]),
    )


def _curves(said: dict[str, list[list[float]]]) -> dict[int, Curve]:
    """Read curves back: JSON knows no whole numbers as keys, and no tuples."""
    return {
        int(seed): tuple((int(seen), accuracy) for seen, accuracy in curve)
        for seed, curve in said.items()
    }
