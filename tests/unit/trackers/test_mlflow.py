"""The example's tracker against a real MLflow, where there is one; it is no dependency of ours."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "mlflow_tracker.py"
SPEC = """
benchmark = "mnist-split"
memory = [20]
[stream]
examples_per_segment = 20
validation_per_segment = 20
[evaluation]
on = "validation"
points = 5
examples = 50
[methods.er-p]
"""
CHECK = """
import sys
sys.path.insert(0, sys.argv[1])
from mlflow_tracker import MLflow
from recollect.testing import check_tracker
check_tracker(MLflow)
"""
READ = """
import json
from mlflow import MlflowClient
client = MlflowClient()
where = client.get_experiment_by_name("mnist-split").experiment_id
(run,) = client.search_runs([where])
history = client.get_metric_history(run.info.run_id, "loss/incoming")
print(json.dumps({
    "params": run.data.params,
    "steps": [metric.step for metric in history],
    "metrics": sorted(run.data.metrics),
}))
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("mlflow") is None, reason="MLflow is not installed"),
]


def python(*words: str, place: Path) -> str:
    database = {"MLFLOW_TRACKING_URI": f"sqlite:///{place}/mlflow.db"}
    ended = subprocess.run(
        [sys.executable, *words],
        cwd=place,
        env=os.environ | database,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_example_keeps_steps_over_the_end_of_a_process(tmp_path: Path) -> None:
    python("-c", CHECK, str(EXAMPLE.parent), place=tmp_path)


def test_a_run_is_one_run_of_mlflow_with_every_step_and_setting(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(SPEC)
    words = ["-m", "recollect", "run", "--spec", "spec.toml", "--method", "er-p", "--seeds", "1"]
    for _ in range(2):  # the second writes nothing more
        python(*words, "--workers", "1", "--track", f"{EXAMPLE}:MLflow", place=tmp_path)
    found = json.loads(python("-c", READ, place=tmp_path))
    assert found["steps"] == list(range(1, 11))
    assert found["params"]["settings.optimizer.lr"] == "0.05"
    assert "accuracy/classes 0 1" in found["metrics"]
