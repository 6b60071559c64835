"""Points of runs, and the trackers that get them: each step once, whatever was killed."""

import csv
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean

import pytest

from recollect.cli import main
from recollect.errors import ConfigError, StoreError
from recollect.experiments.executors.workforce import Workforce
from recollect.experiments.records.compare_records import without_times
from recollect.experiments.records.store import Store
from recollect.experiments.running.events import Event
from recollect.experiments.running.execute import Progress, Stopped, execute
from recollect.experiments.running.sweep import sweep
from recollect.experiments.specs.build import build
from recollect.experiments.specs.request import Request
from recollect.experiments.tracking.kept import keep_points, kept_points, points_path
from recollect.experiments.tracking.named import named_trackers
from recollect.experiments.tracking.trace import Point, point_moments
from recollect.experiments.tracking.tracks import Tracks
from recollect.trackers import CSV, Tracker

RequestFor = Callable[..., Request]
KINDS = {"csv": CSV}

OWN = """
from recollect.trackers import CSV

class Mine(CSV):
    pass

class Full(CSV):
    def keep(self, step, numbers):
        if step > 7:
            raise OSError(28, "No space left on device")
        super().keep(step, numbers)

class NoTracker:
    pass
"""


def tracked(request: Request) -> Request:
    return replace(request, is_tracked=True)


def points_of(request: Request, place: Path | None = None, stop_after: int = 0) -> list[Point]:
    """Run, or go on, and return the points that were told."""
    told: list[Progress] = []
    asks = iter(range(10**6))
    with suppress(Stopped):
        execute(
            tracked(request),
            checkpoints=place,
            on_progress=told.append,
            should_stop=lambda: bool(stop_after) and next(asks) >= stop_after,
        )
    return [point for progress in told for point in progress.points or ()]


def timeless(points: list[Point]) -> list[tuple[int, dict[str, float]]]:
    return [
        (point.step, {name: v for name, v in point.numbers.items() if name != "seconds/step"})
        for point in points
    ]


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "steps.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def steps_of(folder: Path) -> list[int]:
    return [int(row["step"]) for row in rows_of(folder)]


def test_tracking_changes_nothing_but_what_is_told(request_for: RequestFor) -> None:
    request = request_for("er-pc-mir")
    record, same = execute(tracked(request)), execute(request)
    assert without_times(record) == without_times(same)
    told: list[Progress] = []
    execute(request, on_progress=told.append)
    assert {(progress.points, progress.started_at) for progress in told} == {(None, None)}


def test_points_hold_what_a_bare_loop_gives(request_for: RequestFor) -> None:
    request = request_for("er-pc-mir")
    record = execute(request)
    benchmark, learner = build(request.cell, request.seed)
    points = points_of(request)
    looks = {point.seen: point for point in record.curve}
    memories = {point.seen: point for point in record.memory}
    reports = []
    (due, *later) = points
    for inputs, labels in benchmark.stream:
        reports.append(learner.observe(inputs, labels))
        if learner.step < due.step:
            continue
        losses = [report.loss for report in reports]
        assert due.numbers["loss/incoming"] == pytest.approx(fmean(losses), rel=1e-12)
        weights = [report.updates[0].weights for report in reports]
        sums = [float(w[1:].sum()) for w in weights if w is not None]
        expected = pytest.approx(fmean(sums), rel=1e-12) if sums else None
        assert due.numbers.get("weight/replayed") == expected
        assert due.numbers["seen"] == learner.seen
        if (look := looks.get(learner.seen)) is not None:
            shares = [c / t for c, t in zip(look.correct, look.total, strict=True)]
            assert due.numbers["accuracy/average"] == fmean(shares)
            memory = memories[learner.seen]
            for label, count in zip(memory.classes, memory.counts, strict=True):
                assert due.numbers[f"memory/class {label}"] == count
            assert due.numbers["age/median"] == memory.age_quantiles[2]
        reports = []
        if later:
            (due, *later) = later
    assert due.step == learner.step == 20
    assert not later


@pytest.mark.parametrize("stop_after", [1, 3, 4, 6, 9, 22])
def test_a_run_that_is_continued_tells_every_point_again(
    request_for: RequestFor, tmp_path: Path, stop_after: int
) -> None:
    request = request_for("er-pc-mir")
    points_of(request, tmp_path / "place", stop_after)
    again = points_of(request, tmp_path / "place")
    assert timeless(again) == timeless(points_of(request))


def test_long_runs_have_two_hundred_points_and_every_look() -> None:
    moments = point_moments(5000, [17, 5000])
    assert len(moments) == 201
    assert {17, 25, 5000} <= moments
    assert point_moments(3, [3]) == {1, 2, 3}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def run_tracked(request: Request, store: Store, kind: type[Tracker] = CSV) -> Tracks:
    """Do what a worker and its command do, in one process."""
    tracks, points = Tracks({"csv": kind}, store), list[Point]()
    tracks.catch_up([request])
    if store.is_done(request):
        return tracks

    def tell(progress: Progress) -> None:
        points.extend(progress.points or ())
        tracks.note(Event("progress", request, **asdict(progress)))

    record = execute(tracked(request), on_progress=tell)
    keep_points(store, request, record.started_at, map(asdict, points))
    store.add(request, record)
    tracks.note(Event("failed" if record.error else "done", request, is_new=True))
    tracks.close()
    return tracks


def test_a_sweep_writes_every_point_once(request_for: RequestFor, store: Store) -> None:
    requests, tracks = [tracked(request_for(seed=seed)) for seed in (0, 1)], Tracks(KINDS, store)
    sweep(requests, store, Workforce(1), on_event=tracks.note)
    tracks.close()
    assert not tracks.trouble
    for request in requests:
        rows = rows_of(tracks.folder("csv", request))
        assert [int(row["step"]) for row in rows] == list(range(1, 21))
        same = timeless(points_of(request))
        for row, (_, numbers) in zip(rows, same, strict=True):
            assert {name: float(row[name]) for name in numbers} == numbers


def test_lines_lost_between_record_and_tracker_are_written_by_the_next_command(
    request_for: RequestFor, store: Store
) -> None:
    request = request_for()
    tracks = run_tracked(request, store)
    file = tracks.folder("csv", request) / "steps.csv"
    whole = file.read_text()
    file.write_text(whole[: len(whole) // 2])
    run_tracked(request, store)
    assert file.read_text() == whole
    file.unlink()  # or the tracker is another one
    run_tracked(request, store)
    assert steps_of(file.parent) == list(range(1, 21))


def test_another_attempt_at_a_run_takes_the_place_of_the_first(
    request_for: RequestFor, store: Store
) -> None:
    request, tracks = request_for(), Tracks({"csv": CSV}, store)
    store.prepare()
    keep_points(store, request, "yesterday", [{"step": 9, "numbers": {"old": 1.0}}])
    told = [{"step": 1, "numbers": {"loss": 2.0}}]
    for started_at, points in (("yesterday", [{"step": 9, "numbers": {"old": 1}}]), ("now", told)):
        tracks.note(Event("progress", request, started_at=started_at, points=points))
        tracks.note(Event("died", request))
    assert rows_of(tracks.folder("csv", request)) == [{"step": "1", "loss": "2.0"}]


def test_two_commands_do_not_write_to_one_run_at_the_same_time(
    request_for: RequestFor, store: Store
) -> None:
    request = request_for()
    first, second = Tracks({"csv": CSV}, store), Tracks({"csv": CSV}, store)
    told = Event(
        "progress", request, started_at="now", points=[{"step": 1, "numbers": {"loss": 2.0}}]
    )
    first.note(told)
    second.note(told)
    assert not second.trouble
    first.close()
    second.close()
    assert steps_of(first.folder("csv", request)) == [1]


def test_a_tracker_that_raises_loses_no_run_and_no_step(
    request_for: RequestFor, store: Store, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(OWN)
    kinds = named_trackers([f"{tmp_path}/own.py:Full"])
    request = request_for()
    tracks = run_tracked(request, store, kinds["own"])
    assert store.is_done(request)
    assert str(tracks.trouble["csv"]) == "[Errno 28] No space left on device"
    assert steps_of(tracks.folder("csv", request)) == list(range(1, 8))
    run_tracked(request, store)  # there is room again
    assert steps_of(tracks.folder("csv", request)) == list(range(1, 21))


def test_a_run_that_fails_has_told_its_last_points(request_for: RequestFor, store: Store) -> None:
    request = request_for("diverging")
    tracks = run_tracked(request, store)
    record = store.record(request)
    assert record is not None
    assert record.status == "failed"
    assert steps_of(tracks.folder("csv", request)) == list(range(1, record.num_steps + 1))


def test_damaged_points_are_an_error_that_names_the_file(
    request_for: RequestFor, store: Store
) -> None:
    request = request_for()
    assert kept_points(store, request) is None
    keep_points(store, request, "now", [])
    points_path(store, request).write_text("{")
    with pytest.raises(StoreError, match=r"s0\.json` is damaged.*delete it"):
        kept_points(store, request)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("tensorbord", "did you mean `tensorboard`"),
        ("OWN:Absent", "has no class Absent"),
        ("OWN:NoTracker", "which is no tracker; derive it from Tracker"),
        ("absent.py:Mine", "cannot be read"),
        ("own.py", "write it as path/to/file.py:Name"),
    ],
)
def test_a_tracker_that_is_none_is_refused(tmp_path: Path, name: str, told: str) -> None:
    (tmp_path / "own.py").write_text(OWN)
    with pytest.raises(ConfigError, match=told):
        named_trackers([name.replace("OWN", f"{tmp_path}/own.py")])


def test_two_trackers_of_one_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    with pytest.raises(ConfigError, match="whose folder 'own' another takes"):
        named_trackers([f"{tmp_path}/own.py:Mine", f"{tmp_path}/own.py:Full"])


def test_an_extra_that_is_missing_is_told_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.experiments.tracking.named.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"not installed\. Run `pip install tensorboard`"):
        named_trackers(["tensorboard"])


def run_command(*words: str) -> int:
    sys.argv = ["recollect", "run", *words]
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_the_command_tracks_by_name_and_by_file(
    small_spec: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [])
    (tmp_path / "own.py").write_text(OWN)
    words = ("--spec", str(small_spec), "--method", "er", "--seeds", "1", "--workers", "1", "-q")
    assert run_command(*words, "--track", "csv", "--track", "own.py:Full") == 0
    told = capsys.readouterr().err
    assert "warning: tracker own raised OSError: [Errno 28] No space left on device" in told
    (whole,) = Path("runs/tracked/csv/mnist-split").iterdir()
    (cut,) = Path("runs/tracked/own/mnist-split").iterdir()
    assert steps_of(whole) == list(range(1, 21))
    assert rows_of(cut) == [
        {name: row[name] for name in rows_of(cut)[0]} for row in rows_of(whole)[:7]
    ]
    (kept,) = Path("runs/points/mnist-split").iterdir()
    kept.unlink()
    assert run_command(*words, "--track", "csv") == 0
    told = "warning: 1 run was done before without --track; trackers have nothing of it.\n"
    assert told in capsys.readouterr().err
    assert run_command(*words, "--track", "nobody") == 1
    assert "--track: is 'nobody'" in capsys.readouterr().err
