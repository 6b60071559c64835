"""Which executor makes the runs of a command."""

from recollect.experiments.executors.contract import Executor
from recollect.experiments.executors.local import LocalWorkers
from recollect.experiments.executors.workforce import Workforce, check_on
from recollect.experiments.records.store import Store


def executor_for(workforce: Workforce, store: Store, *, num_runs: int | None) -> Executor:
    """Return who makes runs.

    Args:
        workforce: Who they shall be.
        store: Where records and checkpoints are.
        num_runs: How many runs there are to make, if that is known: more processes are not started.

    Raises:
        ValueError: They are no workers, or have no threads.
        ConfigError: `on` names no cluster.
        MissingExtraError: It names one, and distributed is not installed.
    """
    if workforce.workers < 1:
        raise ValueError(f"`workers` is {workforce.workers}; pass at least 1.")
    if workforce.threads < 1:
        raise ValueError(f"`threads` is {workforce.threads}; pass at least 1.")
    most = workforce.workers if num_runs is None else num_runs
    workers, threads = max(1, min(workforce.workers, most)), workforce.threads
    share = workforce.checkpoint_share
    if workforce.on is None:
        return LocalWorkers(store, workers=workers, threads=threads, checkpoint_share=share)
    check_on(workforce.on)
    from recollect.experiments.executors.cluster import DaskCluster

    return DaskCluster(
        workforce.on, store, workers=workers, threads=threads, checkpoint_share=share
    )
