"""A run on the user's own data, model, optimizer and schedule survives a kill to the bit."""

import os
import signal
import sys
from pathlib import Path

import pytest
from tests.kill.test_kill import SHARE, after, children
from tests.unit.experiments.own_data import NET, write_photos
from typer.testing import CliRunner

from recollect.cli import app
from recollect.experiments.executors.workforce import Workforce
from recollect.experiments.records.compare_records import without_times
from recollect.experiments.records.store import Store
from recollect.experiments.running.events import Event
from recollect.experiments.running.execute import execute
from recollect.experiments.running.sweep import sweep
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.request import Request, requests
from recollect.experiments.specs.spec import load_spec

pytestmark = pytest.mark.slow

SPEC = """
memory = [40]
[data]
folder = "photos"
classes_per_segment = 2
blur = 10
[model]
name = "net.py:Net"
[optimizer]
name = "AdamW"
weight_decay = 0.05
[scheduler]
name = "OneCycleLR"
max_lr = 1e-2
total_steps = "stream"
[learner]
iterations = 5
augment = ["RandomFlip", { name = "RandomCrop", padding = 1 }]
dtype = "bfloat16"
[methods.er-pc-mir]
"""


@pytest.fixture
def wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Request:
    monkeypatch.chdir(tmp_path)
    # Workers start in this folder, and must find the code that is tested.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(os.path.abspath, filter(None, sys.path))))
    write_photos(Path("photos"), each=50)
    Path("net.py").write_text(NET)
    Path("my.toml").write_text(SPEC)
    return requests(cells(load_spec("my.toml")), [0])[0]


def test_a_run_on_own_data_whose_worker_is_killed_is_the_undisturbed_one(
    wanted: Request,
) -> None:
    kinds: list[str] = []

    def kill_soon(event: Event) -> None:
        is_first = event.kind == "progress" and kinds[-1] == "started"
        kinds.append(event.kind)
        if is_first and kinds.count("started") < 2:
            worker = children(os.getpid())[0]
            after(0.1, lambda: os.kill(worker, signal.SIGKILL))

    store = Store("runs")
    outcome = sweep([wanted], store, Workforce(1, checkpoint_share=SHARE), on_event=kill_soon)
    assert outcome.num_done == 1, kinds
    record = store.record(wanted)
    assert record is not None
    assert record.num_resumes > 0
    undisturbed = execute(wanted)
    assert undisturbed.error is None
    assert without_times(record) == without_times(undisturbed)


def test_a_store_of_own_data_is_reported_drawn_verified_and_kept_out_of_the_paper(
    wanted: Request,
) -> None:
    (wanted,) = requests(cells(load_spec("my.toml", overrides=["learner.iterations=1"])), [0])
    store = Store("runs")
    store.add(wanted, execute(wanted, checkpoints=Path("place"), checkpoint_share=1.0))
    (checkpoint,) = Path("place").glob("*.ckpt")
    command = CliRunner()
    for words, told in (
        (["report", "runs", "-o", "page.html"], ""),
        (["figure", "bars", "runs", "-o", "bars.png"], ""),
        (["verify", "runs"], ""),
        (["inspect", str(checkpoint)], "Slots by class"),
        (["paper", "table1", "--store", "runs", "--no-run"], "mnist-split"),
    ):
        ended = command.invoke(app, words)
        assert ended.exit_code == 0, (words, ended.output, ended.exception)
        assert told.lower() in ended.output.lower().replace("mnist-s", "mnist-split")
        if words[0] == "paper":
            assert "photos" not in ended.output
    assert "photos" in Path("page.html").read_text()
