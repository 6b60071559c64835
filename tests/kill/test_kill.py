"""Kill workers and parents at random moments; what is continued must be what was undisturbed."""

import csv
import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # type: ignore[import-untyped]

from recollect.errors import StoreError
from recollect.experiments.executors.workforce import Workforce
from recollect.experiments.records.compare_records import without_times
from recollect.experiments.records.record import Record
from recollect.experiments.records.store import Store
from recollect.experiments.running import sweep as sweeping
from recollect.experiments.running.events import Event
from recollect.experiments.running.execute import execute
from recollect.experiments.running.sweep import Outcome, sweep
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.request import Request, requests
from recollect.experiments.specs.spec import load_spec
from recollect.experiments.tracking.trace import Point

pytestmark = pytest.mark.slow

# Half of the time goes into saving, so that a kill often falls into it.
SHARE = 1.0

SPEC = """
benchmark = "mnist-split"
memory = [100]
[stream]
examples_per_segment = 300
validation_per_segment = 20
[evaluation]
on = "validation"
[methods.er-pc-mir]
[methods.er]
[methods.van]
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.toml"
    path.write_text(SPEC)
    return path


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def wanted(spec: Path) -> list[Request]:
    return requests(cells(load_spec(spec), methods=["er-pc-mir"]), range(1))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Record:
    path = tmp_path_factory.mktemp("undisturbed") / "spec.toml"
    path.write_text(SPEC)
    return execute(requests(cells(load_spec(path), methods=["er-pc-mir"]), range(1))[0])


def check_same(store: Store, request: Request, undisturbed: Record) -> Record:
    record = store.record(request)
    assert record is not None
    assert without_times(record) == without_times(undisturbed)
    assert not store.checkpoint_folder(request).exists()
    return record


def test_a_run_whose_worker_is_killed_twice_is_the_undisturbed_one(
    store: Store, wanted: list[Request], undisturbed: Record
) -> None:
    moments = random.Random(0)
    kinds: list[str] = []

    def kill_soon(event: Event) -> None:
        is_first = event.kind == "progress" and kinds[-1] == "started"
        kinds.append(event.kind)
        if is_first and kinds.count("started") < 3:
            worker = children(os.getpid())[0]
            after(moments.uniform(0.1, 0.4), lambda: os.kill(worker, signal.SIGKILL))

    outcome = sweep(wanted, store, Workforce(1, checkpoint_share=SHARE), on_event=kill_soon)
    assert outcome.num_done == 1
    assert [kind for kind in kinds if kind != "progress"] == ["started", "died"] * 2 + [
        "started",
        "done",
    ]
    assert check_same(store, wanted[0], undisturbed).num_resumes > 0


def test_a_run_that_kills_its_workers_is_recorded_as_failed_in_the_end(
    store: Store, wanted: list[Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "_MOST_TRIES", 2)

    def kill(event: Event) -> None:
        if event.kind == "started":
            os.kill(children(os.getpid())[0], signal.SIGKILL)

    outcome = sweep(wanted, store, Workforce(1), on_event=kill)
    assert outcome.failed == tuple(wanted)
    record = store.record(wanted[0])
    assert record is not None
    assert record.error is not None
    assert "SIGKILL, 2 times" in record.error


def test_ctrl_c_then_a_killed_parent_then_a_command_that_ends(
    spec: Path, store: Store, wanted: list[Request], undisturbed: Record
) -> None:
    moments = random.Random(1)
    interrupted = start_command(spec, store)
    wait_for("started", interrupted)
    time.sleep(moments.uniform(0.2, 0.6))
    interrupted.send_signal(signal.SIGINT)
    _, told = interrupted.communicate(timeout=60)
    assert interrupted.returncode == 130
    assert "1 of 1 runs are not done. Continue:\n  recollect run --spec" in told
    assert store.checkpoint_folder(wanted[0]).exists()

    killed = start_command(spec, store)
    wait_for("started", killed)
    time.sleep(moments.uniform(0.1, 0.4))
    workers = children(killed.pid)
    killed.kill()
    killed.communicate(timeout=60)
    assert workers
    until(lambda: not any(is_alive(worker) for worker in workers))

    assert sweep(wanted, store, Workforce(1)).num_done == 1
    assert check_same(store, wanted[0], undisturbed).num_resumes == 2


def test_trackers_of_a_killed_command_get_every_step_once(
    spec: Path, store: Store, wanted: list[Request]
) -> None:
    moments = random.Random(2)
    for _ in range(2):
        killed = start_command(spec, store, "--track", "csv", "--track", "tensorboard")
        wait_for("started", killed)
        time.sleep(moments.uniform(0.0, 0.7))
        workers = children(killed.pid)
        killed.kill()
        killed.communicate(timeout=60)
        for worker in workers:
            until(partial(is_dead, worker))
    last = start_command(spec, store, "--track", "csv", "--track", "tensorboard")
    _, said = last.communicate(timeout=120)
    assert last.returncode == 0, said
    tracked = store.root / "tracked"
    (rows,) = (tracked / "csv" / "mnist-split").glob("*/steps.csv")
    with rows.open(newline="") as file:
        written = list(csv.DictReader(file))
    points: list[Point] = []
    request = replace(wanted[0], is_tracked=True)
    execute(request, on_progress=lambda progress: points.extend(progress.points or ()))
    assert [int(row["step"]) for row in written] == [point.step for point in points]
    for row, point in zip(written, points, strict=True):
        numbers = {name: v for name, v in point.numbers.items() if name != "seconds/step"}
        assert {name: float(row[name]) for name in numbers} == numbers
    (folder,) = (tracked / "tensorboard" / "mnist-split").iterdir()
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    steps = [event.step for event in events.Scalars("loss/incoming")]
    assert steps == [point.step for point in points]


def test_two_sweeps_on_one_store_make_each_run_once(spec: Path, store: Store) -> None:
    wanted = requests(cells(load_spec(spec), methods=["er", "van"]), range(2))
    outcomes: list[Outcome] = []
    kinds: list[tuple[str, str]] = []

    def go() -> None:
        def note(event: Event) -> None:
            kinds.append((event.kind, event.request.key))

        outcomes.append(sweep(wanted, store, Workforce(1), on_event=note))

    both = [threading.Thread(target=go) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert sum(outcome.num_done for outcome in outcomes) == 4
    assert sum(outcome.num_there for outcome in outcomes) == 4
    started = [key for kind, key in kinds if kind == "started"]
    assert sorted(started) == sorted(request.key for request in wanted)
    assert len(list((store.root / "records").rglob("*.parquet"))) == 4


def test_a_run_of_another_command_is_waited_for_and_taken_over(spec: Path, store: Store) -> None:
    (request,) = requests(cells(load_spec(spec), methods=["van"]), range(1))
    store.prepare()
    released = threading.Event()

    def note(event: Event) -> None:
        if event.kind == "elsewhere":
            released.set()

    def other_command() -> None:
        with store.claimed(request) as is_ours:
            assert is_ours
            held.set()
            released.wait(60)

    held = threading.Event()
    other = threading.Thread(target=other_command)
    other.start()
    held.wait(10)
    outcome = sweep([request], store, Workforce(1), on_event=note)
    other.join()
    assert released.is_set()
    assert outcome.num_done == 1


def test_a_disk_that_fills_up_stops_with_a_clear_error_and_the_same_command_continues(
    store: Store, wanted: list[Request], undisturbed: Record
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))  # a learner's file is larger
    try:
        with pytest.raises(StoreError, match="then give the same command again: it continues"):
            sweep(wanted, store, Workforce(1, checkpoint_share=SHARE))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert store.records() == []
    assert children(os.getpid()) == []
    assert sweep(wanted, store, Workforce(1)).num_done == 1
    check_same(store, wanted[0], undisturbed)


# --- what the tests need --------------------------------------------------------------------------


def start_command(spec: Path, store: Store, *more: str) -> "subprocess.Popen[str]":
    words = ["run", "--spec", str(spec), "--method", "er-pc-mir", "--seeds", "1", "--json"]
    words += ["--workers", "1", "--out", str(store.root), "--checkpoint-share", str(SHARE)]
    words += more
    return subprocess.Popen(
        [sys.executable, "-c", "from recollect.cli import main; main()", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(kind: str, command: "subprocess.Popen[str]") -> None:
    assert command.stdout is not None
    for line in command.stdout:
        if json.loads(line)["event"] == kind:
            return
    raise AssertionError(f"the command ended before {kind!r}")


def after(seconds: float, act: Callable[[], None]) -> None:
    threading.Timer(seconds, act).start()


def children(pid: int) -> list[int]:
    """Workers started by any thread of `pid`: a process of tests may have other children."""
    found = []
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        found += [int(child) for child in tasks.read_text().split() if is_worker(int(child))]
    return found


def is_worker(pid: int) -> bool:
    try:
        return b"recollect.experiments.running.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def is_dead(pid: int) -> bool:
    return not is_alive(pid)


def until(claim: Callable[[], bool], *, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < deadline
        time.sleep(0.05)
