"""Which settings the records choose."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from recollect.experiments.records.record import Record
from recollect.reports.cells import final_accuracy
from recollect.reports.statistics import Summary, summarise
from studies.kept import Identity
from studies.tuning.space import Study, Trial

Kept = Mapping[Identity, Record]


@dataclass(frozen=True)
class Stage:
    """How a trial did on the seeds of one stage.

    Attributes:
        accuracies: Final average accuracy on validation data, by seed, of runs that are done.
        num_failed: Runs that failed, mostly because they diverged.
        num_missing: Runs not made.
    """

    accuracies: dict[int, float]
    num_failed: int
    num_missing: int

    @property
    def summary(self) -> Summary | None:
        """Mean and spread; None without a run."""
        return summarise(list(self.accuracies.values())) if self.accuracies else None

    @property
    def is_complete(self) -> bool:
        """Whether every run was made, be it that it failed."""
        return not self.num_missing

    @property
    def rank(self) -> tuple[int, float]:
        """Sort key: a setting with failed runs stands behind all others."""
        summary = self.summary
        return -self.num_failed, -1.0 if summary is None else summary.mean


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


def stage(trial: Trial, seeds: Iterable[int], kept: Kept) -> Stage:
    """Read one stage of one trial from the records."""
    accuracies: dict[int, float] = {}
    failed = missing = 0
    for seed in seeds:
        record = kept.get((trial.cell.spec_hash, seed))
        if record is None:
            missing += 1
        elif record.status == "done":
            accuracies[seed] = final_accuracy(record)
        else:
            failed += 1
    return Stage(accuracies, failed, missing)


def finalists(study: Study, method: str, kept: Kept) -> list[Trial]:
    """Return the best trials of the first stage; none before it is complete."""
    stages = [(t, stage(t, study.budget.first_seeds, kept)) for t in study.trials[method]]
    if not all(result.is_complete for _, result in stages):
        return []
    distinct: dict[str, tuple[Trial, Stage]] = {}
    for trial, result in stages:
        distinct.setdefault(trial.cell.spec_hash, (trial, result))
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
    is_over = bool(last) and all(fresh[number].is_complete for number in last)
    best = max(sorted(last), key=lambda number: fresh[number].rank) if is_over else None
    if ranked and not study.budget.fresh_seeds:
        best = ranked[0]
    return [
        Standing(
            trial,
            stage(trial, study.budget.first_seeds, kept),
            fresh[trial.number],
            is_finalist=trial.number in last,
            is_chosen=trial.number == best,
        )
        for trial in study.trials[method]
    ]


def chosen(found: Sequence[Standing]) -> Standing | None:
    """Return the chosen one of a method; None while its study is not over."""
    return next((standing for standing in found if standing.is_chosen), None)
