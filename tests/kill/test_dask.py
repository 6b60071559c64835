"""The same sweep by our workers and on dask; workers and schedulers that are killed in mid-run."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kill.test_kill import SHARE, SPEC, until

from recollect.errors import WorkerError
from recollect.experiments.executors import cluster as of_cluster
from recollect.experiments.executors.workforce import Workforce
from recollect.experiments.records.compare_records import without_times
from recollect.experiments.records.record import Record
from recollect.experiments.records.store import Store
from recollect.experiments.running.events import Event
from recollect.experiments.running.execute import execute
from recollect.experiments.running.machine import versions
from recollect.experiments.running.sweep import sweep
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.request import Request, requests
from recollect.experiments.specs.spec import load_spec

pytestmark = pytest.mark.slow

# Paths through it lead each process to its own folder: a store there is shared with nobody.
MINE = Path("/proc/self/cwd")


class Processes:
    """A scheduler and workers, each a process of its own with a folder of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []

    @property
    def file(self) -> Path:
        return self.root / "scheduler.json"

    @property
    def address(self) -> str:
        address: str = json.loads(self.file.read_text())["address"]
        return address

    def start(self, *, workers: int) -> None:
        self.file.unlink(missing_ok=True)
        self.scheduler = self._started("dask_scheduler", "scheduler")
        until(self.file.exists)
        for _ in range(workers):
            self.add_worker()

    def add_worker(self) -> "subprocess.Popen[bytes]":
        options = ["--nthreads", "1", "--no-nanny"]
        worker = self._started("dask_worker", f"worker-{len(self.workers)}", *options)
        self.workers.append(worker)
        return worker

    def _started(self, module: str, folder: str, *options: str) -> "subprocess.Popen[bytes]":
        (self.root / folder).mkdir(exist_ok=True)
        # Without our source on their path: what they need comes from the sweep.
        environment = {key: found for key, found in os.environ.items() if key != "PYTHONPATH"}
        return subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", f"distributed.cli.{module}"),
                *("--scheduler-file", str(self.file), "--host", "127.0.0.1", "--no-dashboard"),
                *options,
            ],
            cwd=self.root / folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def end(self) -> None:
        for process in (*self.workers, *filter(None, [self.scheduler])):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    started = Processes(tmp_path_factory.mktemp("cluster"))
    started.start(workers=2)
    yield started
    started.end()


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.toml"
    path.write_text(SPEC)
    return path


def wanted_of(spec: Path, *methods: str, seeds: int = 1) -> list[Request]:
    return requests(cells(load_spec(spec), methods=methods), range(seeds))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Record:
    path = tmp_path_factory.mktemp("undisturbed") / "spec.toml"
    path.write_text(SPEC)
    return execute(wanted_of(path, "er-pc-mir")[0])


@pytest.fixture
def unshared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store that no other process finds."""
    monkeypatch.chdir(tmp_path)
    return Store(MINE / "unshared")


@pytest.fixture
def in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints go back whenever they are saved."""
    monkeypatch.setattr(of_cluster, "_SLICE_SECONDS", 0.0)


def recorded(store: Store) -> list[Record]:
    return [without_times(record) for record in store.records()]


def test_a_sweep_is_the_same_by_our_workers_by_dask_and_on_two_workers_started_by_hand(
    processes: Processes, spec: Path, tmp_path: Path, unshared: Store
) -> None:
    wanted = wanted_of(spec, "er", "van", seeds=2)
    ours, local, shared = (Store(tmp_path / name) for name in ("ours", "local", "shared"))
    places = [(ours, None), (local, "dask"), (shared, str(processes.file))]
    for store, on in [*places, (unshared, processes.address)]:
        events: list[Event] = []
        outcome = sweep(wanted, store, Workforce(2, on=on), on_event=events.append)
        assert (outcome.num_done, outcome.failed, outcome.was_stopped) == (4, (), False)
        kinds = Counter(event.kind for event in events)
        assert (kinds["started"], kinds["done"], kinds["died"]) == (4, 4, 0)
        assert kinds["progress"] > 0
        assert list(store.root.glob(".*")) == []
    assert recorded(local) == recorded(ours)
    assert recorded(shared) == recorded(ours)
    assert recorded(unshared) == recorded(ours)
    assert len(recorded(ours)) == 4


@pytest.mark.parametrize("is_shared", [True, False], ids=["shared store", "store not shared"])
def test_a_dask_worker_that_is_killed_in_mid_run_loses_nothing_and_nothing_is_made_twice(
    is_shared: bool,
    processes: Processes,
    spec: Path,
    tmp_path: Path,
    unshared: Store,
    undisturbed: Record,
    in_slices: None,
) -> None:
    store = Store(tmp_path / "store") if is_shared else unshared
    wanted = wanted_of(spec, "er-pc-mir", seeds=2)
    killed: list[int] = []
    kinds: Counter[str] = Counter()

    def kill_one(event: Event) -> None:
        kinds[event.kind] += 1
        if event.kind == "progress" and not killed and saved():
            worker = processes.workers.pop()
            worker.kill()
            killed.append(worker.wait())

    def saved() -> bool:
        return all((store.checkpoint_folder(asked) / "run.json").exists() for asked in wanted)

    workforce = Workforce(2, on=processes.address, checkpoint_share=SHARE)
    outcome = sweep(wanted, store, workforce, on_event=kill_one)
    processes.add_worker()
    assert killed == [-signal.SIGKILL]
    assert (outcome.num_done, outcome.failed, kinds["done"]) == (2, (), 2)
    assert len(list((store.root / "records").rglob("*.parquet"))) == 2
    record = store.record(wanted[0])
    assert record is not None
    assert without_times(record) == without_times(undisturbed)
    resumed = [found.num_resumes for found in store.records()]
    assert sum(resumed) > 0
    assert not list((store.root / "checkpoints").rglob("*.json"))


def test_a_killed_scheduler_is_a_clear_error_and_the_same_command_continues(
    processes: Processes,
    spec: Path,
    unshared: Store,
    undisturbed: Record,
    in_slices: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(of_cluster, "_SILENCE", 1.0)
    wanted = wanted_of(spec, "er-pc-mir")

    def kill(event: Event) -> None:
        assert processes.scheduler is not None
        if event.kind == "progress" and unshared.checkpoint_folder(wanted[0]).exists():
            processes.scheduler.kill()

    workforce = Workforce(1, on=str(processes.file), checkpoint_share=SHARE)
    with pytest.raises(WorkerError, match=r"scheduler at .* is gone.*the same command continues"):
        sweep(wanted, unshared, workforce, on_event=kill)
    assert unshared.records() == []
    assert (unshared.checkpoint_folder(wanted[0]) / "run.json").exists()
    processes.end()
    processes.workers.clear()
    processes.start(workers=2)
    assert sweep(wanted, unshared, workforce).num_done == 1
    record = unshared.record(wanted[0])
    assert record is not None
    assert record.num_resumes > 0
    assert without_times(record) == without_times(undisturbed)


def test_a_scheduler_without_workers_is_told_and_runs_begin_when_one_comes(
    processes: Processes, spec: Path, tmp_path: Path
) -> None:
    for worker in processes.workers:
        worker.kill()
        worker.wait()
    processes.workers.clear()
    notices: list[str] = []

    def note(text: str) -> None:
        notices.append(text)
        processes.add_worker()

    store = Store(tmp_path / "store")
    workforce = Workforce(1, on=processes.address)
    outcome = sweep(wanted_of(spec, "van"), store, workforce, on_notice=note)
    processes.add_worker()
    assert outcome.num_done == 1
    (told,) = notices
    assert "has no workers; runs wait until there are some" in told


def test_workers_with_another_torch_are_refused_by_name(
    processes: Processes, spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = {**versions(), "torch": "1.0"}
    monkeypatch.setattr(of_cluster, "versions", lambda: others)
    wanted, store = wanted_of(spec, "van"), Store(tmp_path / "store")
    with pytest.raises(WorkerError, match=r"127\.0\.0\.1:\d+ has torch \S+, where .* has 1\.0"):
        sweep(wanted, store, Workforce(1, on=processes.address))
    assert not list(store.root.glob("records/*"))


def test_ctrl_c_on_a_local_cluster_saves_every_place_and_the_same_command_continues(
    spec: Path, tmp_path: Path, undisturbed: Record
) -> None:
    store = Store(tmp_path / "store")
    (wanted,) = wanted_of(spec, "er-pc-mir")
    words = ["run", "--spec", str(spec), "--method", "er-pc-mir", "--seeds", "1", "--json"]
    words += ["--on", "dask", "--workers", "1", "--out", str(store.root)]
    command = subprocess.Popen(
        [sys.executable, "-c", "from recollect.cli import main; main()", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert command.stdout is not None
    for line in command.stdout:
        if json.loads(line)["event"] == "progress":
            break
    os.killpg(command.pid, signal.SIGINT)  # as a terminal does: to every process of the group
    out, told = command.communicate(timeout=60)
    assert command.returncode == 130, told
    assert '"event": "stopped"' in out
    assert "1 of 1 runs are not done. Continue:\n  recollect run --spec" in told
    assert "Traceback" not in told
    assert (store.checkpoint_folder(wanted) / "run.json").exists()
    assert sweep([wanted], store, Workforce(1)).num_done == 1
    record = store.record(wanted)
    assert record is not None
    assert record.num_resumes == 1
    assert without_times(record) == without_times(undisturbed)
