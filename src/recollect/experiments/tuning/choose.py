"""Which settings the records choose: the best of the first seeds, judged by fresh ones alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from recollect.experiments.records.record import Record
from recollect.experiments.records.scores import accuracy_and_forgetting
from recollect.experiments.tuning.study import Study, Trial

Identity = tuple[str, int]
Kept = Mapping[Identity, Record]


@dataclass(frozen=True)
class Stage:
    """How a trial did on the seeds of one stage.

    Attributes:
        accuracies: Final average accuracy on validation data, by seed, of runs that are done.
        num_failed: Runs that failed, mostly because they diverged.
        num_pruned: Runs that were stopped early, being worse than others at the same place.
        num_missing: Runs not made.
    """

    accuracies: dict[int, float]
    num_failed: int
    num_pruned: int
    num_missing: int

    @property
    def mean(self) -> float | None:
        """Mean accuracy; None without a run that is done."""
        values = list(self.accuracies.values())
        return fsum(values) / len(values) if values else None

    @property
    def is_complete(self) -> bool:
        """Whether every run was made, be it that it failed, or will not be: one was pruned."""
        return not self.num_missing or bool(self.num_pruned)

    @property
    def rank(self) -> tuple[int, float]:
        """Sort key: a setting with failed runs stands behind all others."""
        return -self.num_failed, -1.0 if self.mean is None else self.mean


@dataclass(frozen=True)
class Standing:
    """A trial and how it did.

    Attributes:
        trial: The setting.
        first: On the seeds that all trials ran on.
        fresh: On the seeds of the finalists.
        is_finalist: Whether it is one.
        is_chosen: Whether it is the best of them on the fresh seeds.
    """

    trial: Trial
    first: Stage
    fresh: Stage
    is_finalist: bool
    is_chosen: bool


def by_identity(records: Iterable[Record]) -> dict[Identity, Record]:
    """Return records by settings and seed."""
    return {(record.spec_hash, record.seed): record for record in records}


def stage(trial: Trial, seeds: Iterable[int], kept: Kept) -> Stage:
    """Read one stage of one trial from the records."""
    accuracies: dict[int, float] = {}
    failed = pruned = missing = 0
    for seed in seeds:
        record = kept.get((trial.spec_hash, seed))
        if record is None:
            missing += 1
        elif record.status == "done":
            accuracies[seed], _ = accuracy_and_forgetting(record)
        elif record.status == "pruned":
            pruned += 1
        else:
            failed += 1
    return Stage(accuracies, failed, pruned, missing)


def finalists(study: Study, method: str, kept: Kept) -> list[Trial]:
    """Return the best trials of the first stage; none before it is complete."""
    stages = [(t, stage(t, study.budget.first_seeds, kept)) for t in study.trials[method]]
    if not all(result.is_complete for _, result in stages):
        return []
    distinct: dict[str, tuple[Trial, Stage]] = {}
    for trial, result in stages:
        if not result.num_pruned:
            distinct.setdefault(trial.spec_hash, (trial, result))
    best = sorted(distinct.values(), key=lambda pair: pair[1].rank, reverse=True)
    return [trial for trial, _ in best[: study.budget.finalists]]


def standings(study: Study, method: str, kept: Kept) -> list[Standing]:
    """Return every trial of a method in the order of its number."""
    ranked = [trial.number for trial in finalists(study, method, kept)]
    last = set(ranked)
    fresh = {
        trial.number: stage(trial, study.budget.second_seeds, kept)
        for trial in study.trials[method]
    }
    first = {
        trial.number: stage(trial, study.budget.first_seeds, kept) for trial in study.trials[method]
    }
    judged = fresh if study.budget.fresh_seeds else first
    is_over = bool(last) and all(judged[number].is_complete for number in last)
    order = sorted(last) if study.budget.fresh_seeds else ranked  # of equals the first stands
    best = max(order, key=lambda number: judged[number].rank) if is_over else None
    if best is not None and judged[best].mean is None:  # every run failed
        best = None
    return [
        Standing(
            trial,
            first[trial.number],
            fresh[trial.number],
            is_finalist=trial.number in last,
            is_chosen=trial.number == best,
        )
        for trial in study.trials[method]
    ]


def chosen(found: Sequence[Standing]) -> Standing | None:
    """Return the chosen one of a method; None while its search is not over."""
    return next((standing for standing in found if standing.is_chosen), None)
