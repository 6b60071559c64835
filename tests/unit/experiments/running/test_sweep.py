import dataclasses
import json
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recollect.errors import StoreError, WorkerError
from recollect.experiments.executors.workforce import Workforce
from recollect.experiments.records.compare_records import without_times
from recollect.experiments.records.store import Store
from recollect.experiments.running.events import Event
from recollect.experiments.running.execute import Stopped, execute
from recollect.experiments.running.resume import signed
from recollect.experiments.running.sweep import sweep
from recollect.experiments.specs.request import Request

RequestFor = Callable[..., Request]


def test_a_sweep_makes_what_is_missing_and_a_failure_stops_nobody(
    request_for: RequestFor, tmp_path: Path
) -> None:
    store = Store(tmp_path / "store")
    wanted = [request_for("er"), request_for("diverging"), request_for("gss")]
    store.add(wanted[2], execute(wanted[2]))
    events: list[Event] = []
    outcome = sweep(wanted, store, Workforce(2), on_event=events.append)
    assert (outcome.num_done, outcome.num_there, outcome.was_stopped) == (1, 1, False)
    assert [request.cell.method for request in outcome.failed] == ["diverging"]
    kinds = Counter((e.request.cell.method, e.kind) for e in events if e.kind != "progress")
    assert kinds == {
        ("er", "started"): 1,
        ("er", "done"): 1,
        ("diverging", "started"): 1,
        ("diverging", "failed"): 1,
    }
    record = store.record(wanted[0])
    assert record is not None
    assert record.threads == 1
    assert without_times(record) == without_times(execute(wanted[0]))
    failed = store.record(wanted[1])
    assert failed is not None
    assert "NonFiniteError" in (failed.error or "")
    assert not any(path.is_dir() for path in (store.root / "checkpoints").glob("*/*"))


def test_a_run_can_have_several_threads(request_for: RequestFor, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    sweep([request_for("er")], store, Workforce(1, threads=2))
    record = store.record(request_for("er"))
    assert record is not None
    assert (record.status, record.threads) == ("done", 2)


def test_a_checkpoint_of_other_code_is_left_and_said_so(
    request_for: RequestFor, tmp_path: Path
) -> None:
    store, request = Store(tmp_path / "store"), request_for("er")
    place = store.checkpoint_folder(request)
    with pytest.raises(Stopped):
        execute(request, checkpoints=place, should_stop=lambda: True)
    saved = json.loads((place / "run.json").read_text())
    (place / "run.json").write_bytes(signed({**saved, "code": "yesterday's"}))
    events: list[Event] = []
    assert sweep([request], store, Workforce(1), on_event=events.append).num_done == 1
    told = [(e.kind, e.message) for e in events if e.kind != "progress"]
    reason = (
        f"it was made by other code or other versions (code differs); it is kept in {place}.kept-1"
    )
    assert told == [("started", None), ("anew", reason), ("done", None)]


def test_a_run_of_another_command_is_told_once_however_often_it_is_asked_about(
    request_for: RequestFor, tmp_path: Path
) -> None:
    store, request = Store(tmp_path / "store"), request_for("er")
    told: list[tuple[str, float]] = []

    def note(event: Event) -> None:
        told.append((event.kind, time.monotonic()))

    def is_asked_twice() -> bool:  # it is asked about every half second
        return bool(told) and time.monotonic() > told[0][1] + 1.3

    with store.claimed(request) as is_ours:
        assert is_ours
        outcome = sweep([request], store, Workforce(1), on_event=note, should_stop=is_asked_twice)
    assert outcome.was_stopped
    assert [kind for kind, _ in told] == ["elsewhere"]


def test_nothing_missing_starts_no_worker(
    request_for: RequestFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "store")
    store.add(request_for(), execute(request_for()))
    monkeypatch.setattr(subprocess, "Popen", None)
    assert sweep([request_for()], store, Workforce(2)).num_there == 1


def test_a_worker_that_cannot_start_is_told_with_what_it_said(
    request_for: RequestFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken" / "torch"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('torch is broken here')")
    monkeypatch.setenv("PYTHONPATH", str(broken.parent))
    with pytest.raises(WorkerError, match=r"(?s)could not start.*torch is broken here"):
        sweep([request_for()], Store(tmp_path / "store"), Workforce(1))


def test_a_worker_that_is_killed_while_it_starts_is_replaced(
    request_for: RequestFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = subprocess.Popen
    killed: list[int] = []

    def start_and_kill_the_first(*arguments: Any, **options: Any) -> Any:
        process = start(*arguments, **options)
        if not killed:
            killed.append(process.pid)
            process.kill()
        return process

    monkeypatch.setattr(subprocess, "Popen", start_and_kill_the_first)
    events: list[Event] = []
    store = Store(tmp_path / "store")
    outcome = sweep([request_for()], store, Workforce(1), on_event=events.append)
    assert outcome.num_done == 1
    kinds = [event.kind for event in events if event.kind != "progress"]
    assert kinds == ["died", "started", "done"]
    assert events[0].message == "its worker ended with SIGKILL; the run is continued"


def test_a_store_that_cannot_be_used_is_told_before_anything_is_run(
    request_for: RequestFor, tmp_path: Path
) -> None:
    (tmp_path / "store").write_text("")
    with pytest.raises(StoreError, match="is not a folder"):
        sweep([request_for()], Store(tmp_path / "store"), Workforce(1))


def test_at_least_one_worker_is_needed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`workers` is 0; pass at least 1"):
        sweep([], Store(tmp_path), Workforce(0))


def test_at_least_one_thread_is_needed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`threads` is 0; pass at least 1"):
        sweep([], Store(tmp_path), Workforce(1, threads=0))


def test_a_sweep_that_is_fed_asks_for_more_until_there_is_no_more(
    request_for: RequestFor, tmp_path: Path
) -> None:
    store = Store(tmp_path / "store")
    store.add(request_for("er", 9), execute(request_for("er", 9)))
    waiting = [request_for("er", 0), request_for("van", 0), request_for("er", 9)]
    kinds: list[str] = []
    asked = 0

    def more() -> list[Request] | None:
        """Give one run, then nothing until it is done, then the next."""
        nonlocal asked
        asked += 1
        if not waiting:
            return None if len(ended()) == 3 else []
        return [waiting.pop(0)] if asked % 3 == 0 else []

    def ended() -> list[str]:
        return [kind for kind in kinds if kind == "done"]

    outcome = sweep(more, store, Workforce(2), on_event=lambda event: kinds.append(event.kind))
    assert (outcome.num_done, outcome.num_there, outcome.was_stopped) == (2, 1, False)
    assert {(r.method, r.seed) for r in store.records()} == {("er", 0), ("van", 0), ("er", 9)}


def test_a_pruned_run_is_kept_as_such_and_is_no_failure(
    request_for: RequestFor, tmp_path: Path
) -> None:
    store = Store(tmp_path / "store")
    seen = execute(request_for("er")).curve[1].seen
    barred = dataclasses.replace(request_for("er"), stop_below=((seen, 1.1),))
    events: list[Event] = []
    outcome = sweep([barred], store, Workforce(1), on_event=events.append)
    assert (outcome.num_done, outcome.failed) == (0, ())
    assert [e.kind for e in events if e.kind != "progress"] == ["started", "pruned"]
    record = store.record(barred)
    assert record is not None
    assert record.status == "pruned"
    assert not store.is_done(barred)
    # Without the bar it is another wish, and the whole run stands from then on.
    sweep([request_for("er")], store, Workforce(1))
    (kept,) = store.records()
    assert kept.status == "done"
