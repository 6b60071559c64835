"""A tracker of your own: MLflow, whose server several people and machines share.

MLflow is no dependency of recollect: `pip install mlflow`. Where runs go is MLflow's own setting:
MLFLOW_TRACKING_URI=http://127.0.0.1:5000 recollect run --track examples/mlflow_tracker.py:MLflow
"""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mlflow import MlflowClient  # type: ignore[import-not-found,unused-ignore]
from mlflow.entities import Metric, Param  # type: ignore[import-not-found,unused-ignore]
from typing_extensions import override

from recollect.trackers import Tracker

LAST = "last_step"  # logged together with each step's numbers, so it is there if they are


class MLflow(Tracker):
    """One run of MLflow per run of ours, found again by its tags."""

    @override
    def __init__(self, folder: str | Path, run: Mapping[str, Any] | None = None) -> None:
        super().__init__(folder, run)
        self._client = MlflowClient()
        name = str(self.run.get("benchmark", "recollect"))
        found = self._client.get_experiment_by_name(name)
        where = found.experiment_id if found else self._client.create_experiment(name)
        # An attempt that began anew is another run of MLflow.
        key = self.run.get("key", str(self.folder))
        tags = {"key": key, "started_at": self.run.get("started_at", "")}
        asked = " and ".join(f"tags.`{tag}` = '{value}'" for tag, value in tags.items())
        same = self._client.search_runs([where], asked)
        self._run = same[0] if same else self._client.create_run(where, tags=tags)
        self._id = self._run.info.run_id
        if not same:
            params = [Param(name, str(value)) for name, value in flat(self.run)]
            self._client.log_batch(self._id, params=params)
        self._last_step = int(self._run.data.metrics.get(LAST, 0))

    @property
    @override
    def last_step(self) -> int:
        return self._last_step

    @override
    def keep(self, step: int, numbers: Mapping[str, float]) -> None:
        now = int(time.time() * 1000)
        # MLflow's names have no comma, as in "accuracy/classes 0, 1".
        named = [(name.replace(",", ""), value) for name, value in numbers.items()]
        metrics = [Metric(name, value, now, step) for name, value in [*named, (LAST, step)]]
        self._client.log_batch(self._id, metrics=metrics)
        self._last_step = step

    @override
    def close(self) -> None:
        self._client.set_terminated(self._id)


def flat(facts: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every setting under its path, such as `settings.optimizer.lr`."""
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value
