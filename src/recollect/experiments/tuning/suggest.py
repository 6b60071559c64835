"""Which settings the next trial tries: a function of what it is, and of the trials behind it.

The first trials are what is known, then an even draw; the others are what optuna's TPE makes of
earlier trials. A trial is suggested by exactly those that are `ahead` or more numbers before it,
and its random numbers come from its own number. So the same search suggests the same trials,
however many processes share it and however often it is stopped.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from recollect.experiments.tuning.optional import optuna
from recollect.experiments.tuning.plan import Searched
from recollect.experiments.tuning.spaces.space import draw, is_same, rounded
from recollect.experiments.tuning.study import Origin, Settings
from recollect.ranges import Choice, Range, Whole

STARTUP: Final = 10  # trials before earlier ones have a say
_CANDIDATES: Final = 24  # that TPE chooses among, as optuna has it
_TRIES: Final = 20  # to find settings that no trial has

Curve = tuple[tuple[int, float], ...]
State = Literal["running", "complete", "pruned", "failed"]


@dataclass(frozen=True)
class Past:
    """A trial, as the journal has it.

    Attributes:
        number: From 0.
        settings: What it tries.
        origin: Where they are from.
        state: Whether it is over, and how it ended.
        value: Mean accuracy on validation data, of one that is complete.
        curves: Any-time accuracy by seed: positions in the stream, and accuracies.
        stop_below: At which accuracies its runs are pruned, by seed.
    """

    number: int
    settings: Settings
    origin: Origin
    state: State
    value: float | None = None
    curves: dict[int, Curve] = field(default_factory=dict)
    stop_below: dict[int, Curve] = field(default_factory=dict)


def visible(trials: Sequence[Past], number: int, ahead: int) -> list[Past] | None:
    """Return the trials that suggest trial `number`; None while one of them is running."""
    found = [trial for trial in trials if trial.number <= number - ahead]
    return None if any(trial.state == "running" for trial in found) else found


def suggest(
    search: Searched, number: int, *, seen: Sequence[Past], all_before: Sequence[Past], trials: int
) -> tuple[Settings, Origin]:
    """Return what trial `number` tries.

    Args:
        search: The method's search.
        number: From 0.
        seen: The trials that suggest it (`visible`).
        all_before: All trials with smaller numbers, whose settings it should not repeat.
        trials: How many trials there will be.
    """
    if number < len(search.known):
        return search.known[number], "known"
    num_even = min(STARTUP, trials) - len(search.known)
    place = number - len(search.known)
    if place < num_even:
        found = draw(search.space, num_even, seed=f"even {search.name}")[place]
        if not any(is_same(found, trial.settings) for trial in all_before):
            return found, "drawn"
    for attempt in range(_TRIES):
        # Of fewer candidates the best is less often the one place that looks best.
        candidates = max(1, _CANDIDATES // (attempt + 1))
        found = _by_tpe(search, seen, candidates, seed=f"{search.name} {number} {attempt}")
        if not any(is_same(found, trial.settings) for trial in all_before):
            break
    return found, "suggested"


def distributions_of(space: dict[str, Range]) -> dict[str, Any]:
    """Return ranges as optuna has them."""
    return {key: _distribution(looked) for key, looked in space.items()}


def _distribution(looked: Range) -> Any:
    kinds = optuna().distributions
    if isinstance(looked, Choice):
        return kinds.CategoricalDistribution(looked.values)
    if isinstance(looked, Whole):
        return kinds.IntDistribution(looked.low, looked.high)
    return kinds.FloatDistribution(looked.low, looked.high, log=looked.kind == "log")


def as_optuna(search: Searched, past: Past) -> Any:
    """Return a trial that is over as optuna has it.

    One that failed is shown as one that was pruned at its beginning: its settings are bad ones.
    """
    states = optuna().trial.TrialState
    is_complete = past.state == "complete"
    steps = [accuracy for curve in past.curves.values() for _, accuracy in curve]
    if past.state == "failed":
        steps = []
    return optuna().trial.create_trial(
        state=states.COMPLETE if is_complete else states.PRUNED,
        params=past.settings,
        distributions=distributions_of(search.space),
        value=past.value if is_complete else None,
        intermediate_values=dict(enumerate(steps)),
    )


def _by_tpe(search: Searched, seen: Sequence[Past], candidates: int, *, seed: str) -> Settings:
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:4])
    sampler = optuna().samplers.TPESampler(
        seed=number, n_startup_trials=1, n_ei_candidates=candidates, multivariate=True
    )
    study = optuna().create_study(direction="maximize", sampler=sampler)
    study.add_trials([as_optuna(search, past) for past in seen])
    found = study.ask(distributions_of(search.space)).params
    return {
        key: found[key] if isinstance(looked, Choice | Whole) else rounded(found[key], looked)
        for key, looked in search.space.items()
    }
