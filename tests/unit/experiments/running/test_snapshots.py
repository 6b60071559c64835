"""A sweep keeps the code that it began with: edits reach no run that was begun."""

import json
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from recollect.errors import StoreError
from recollect.experiments.executors.workforce import Workforce
from recollect.experiments.records.store import Store
from recollect.experiments.records.verify import verify_store
from recollect.experiments.running import begun, machine
from recollect.experiments.running.begun import CodeOfSweep
from recollect.experiments.running.execute import execute, failed_record
from recollect.experiments.running.fresh import made_by_other_code, set_other_code_aside
from recollect.experiments.running.machine import code, commit, source
from recollect.experiments.running.snapshots import (
    Snapshot,
    code_folders,
    package_folder,
    part_folder,
    problem_with,
    take_snapshot,
)
from recollect.experiments.running.sweep import sweep
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.request import Request, requests
from recollect.experiments.specs.spec import load_spec

RequestFor = Callable[..., Request]
Edit = Callable[[str, str, str], None]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Edit]:
    """Edit the package, or what stands for it: a copy of ours that sweeps take snapshots of."""
    package = tmp_path / "checkout" / "recollect"
    for name, content in source().items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_bytes(content)
    monkeypatch.setattr(machine, "_PACKAGE", package)

    def change(name: str, before: str, after: str) -> None:
        path = package / name
        assert before in path.read_text()
        path.write_text(path.read_text().replace(before, after, 1))
        code.cache_clear()

    yield change
    code.cache_clear()


# --- what is kept ---------------------------------------------------------------------------------


def test_a_snapshot_is_the_code_that_makes_runs_and_says_so(
    store: Store, request_for: RequestFor
) -> None:
    snapshot = take_snapshot(store, [request_for()])
    assert snapshot.package == code()
    folder = package_folder(store, snapshot.package)
    assert problem_with(folder) == ""
    held = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert held == {"about.json", *(f"recollect/{name}" for name in source())}
    assert sum(path.stat().st_size for path in folder.rglob("*.py")) < 2_000_000
    assert json.loads((folder / "about.json").read_text())["commit"] == commit()


def test_the_same_code_is_kept_once(store: Store, request_for: RequestFor) -> None:
    first = take_snapshot(store, [request_for()])
    changed_at = (package_folder(store, first.package) / "about.json").stat().st_mtime_ns
    assert take_snapshot(store, [request_for(seed=1)]) == first
    assert len(code_folders(store.root)) == 1
    kept = package_folder(store, first.package) / "about.json"
    assert kept.stat().st_mtime_ns == changed_at


def test_a_snapshot_that_was_altered_is_noticed_told_by_verify_and_written_again(
    store: Store, request_for: RequestFor
) -> None:
    folder = package_folder(store, take_snapshot(store, [request_for()]).package)
    (folder / "recollect" / "errors.py").write_text("")
    assert problem_with(folder) == "was altered after it was written"
    assert [verdict.path for verdict in verify_store(store.root)] == [folder]
    take_snapshot(store, [request_for()])
    assert problem_with(folder) == ""
    assert list(verify_store(store.root)) == []


def test_parts_are_kept_with_what_they_import_beside_them(
    store: Store, small_spec: Path, tmp_path: Path
) -> None:
    asked = own_part(small_spec, tmp_path / "ideas", share=0.5)
    snapshot = take_snapshot(store, [asked])
    ((_, digest),) = snapshot.parts.items()
    folder = part_folder(store, digest)
    assert {path.name for path in folder.iterdir()} == {"idea.py", "amounts.py"}


# --- what continues -------------------------------------------------------------------------------


def test_a_stopped_sweep_continues_with_its_snapshot_after_an_edit_that_breaks_the_source(
    store: Store, request_for: RequestFor, edit: Edit
) -> None:
    wanted = [request_for(seed=seed) for seed in range(2)]
    stopped_after_one(wanted, store)
    before = code()
    edit("experiments/running/worker.py", "import torch", "import torches")
    notices: list[str] = []
    events: list[str] = []
    outcome = sweep(
        wanted,
        store,
        Workforce(1),
        on_notice=notices.append,
        on_event=lambda event: events.append(event.kind),
    )
    assert (outcome.num_done, outcome.num_there) == (1, 1)
    assert "anew" not in events
    assert [record.versions["code"] for record in store.records()] == [before, before]
    assert len(notices) == 1
    assert f"({before[:8]}). --fresh takes today's" in notices[0]
    assert list((store.root / "sweeps").iterdir()) == []


def test_a_run_stopped_in_its_middle_continues_from_its_checkpoint_after_an_edit(
    store: Store, request_for: RequestFor, edit: Edit
) -> None:
    request = request_for("er-pc-mir")
    kinds: list[str] = []
    sweep(
        [request],
        store,
        Workforce(1),
        on_event=lambda event: kinds.append(event.kind),
        should_stop=lambda: "progress" in kinds,
    )
    assert kinds[-1] == "stopped"
    edit("learner/report.py", '"""', '"""Edited. ')
    assert sweep([request], store, Workforce(1)).num_done == 1
    record = store.record(request)
    assert record is not None
    assert (record.num_resumes, record.commit) == (1, commit())


def test_fresh_takes_the_source_of_today_and_sets_aside_what_other_code_made(
    store: Store, request_for: RequestFor, edit: Edit
) -> None:
    wanted = [request_for(seed=seed) for seed in range(2)]
    stopped_after_one(wanted, store)
    before = code()
    edit("learner/report.py", '"""', '"""Edited. ')
    notices: list[str] = []
    assert made_by_other_code(wanted, store) == wanted[:1]
    outcome = sweep(wanted, store, Workforce(1), is_fresh=True, on_notice=notices.append)
    assert (outcome.num_done, outcome.num_there) == (2, 0)
    assert {record.versions["code"] for record in store.records()} == {code()}
    assert code() != before
    assert notices == [f"1 finished run of other code is set aside in {store.root}/set-aside"]
    assert len(list((store.root / "set-aside" / "mnist-split").iterdir())) == 1
    assert set_other_code_aside(wanted, store) == 0


def test_more_seeds_of_an_unfinished_sweep_are_made_with_its_code_and_of_a_finished_one_not(
    store: Store, request_for: RequestFor, edit: Edit
) -> None:
    first, second, third = (request_for(seed=seed) for seed in range(3))
    begin = planned(store, first)[first.key]
    edit("learner/report.py", '"""', '"""Edited. ')
    assert planned(store, first, second) == {first.key: begin, second.key: begin}
    for request in (first, second):
        store.add(request, execute(request))
    CodeOfSweep(store).close(is_over=True)
    assert list((store.root / "sweeps").iterdir()) == []
    assert planned(store, third)[third.key].package == code() != begin.package


def test_a_sweep_that_is_fed_keeps_its_code_until_there_are_no_more(
    store: Store, request_for: RequestFor, edit: Edit
) -> None:
    first, second, third = (request_for(seed=seed) for seed in range(3))
    before = code()
    fed: list[list[Request] | None] = [[first], []]
    outcome = sweep(
        lambda: fed.pop(0), store, Workforce(1), should_stop=lambda: len(store.records()) > 0
    )
    assert (outcome.num_done, outcome.was_stopped) == (1, True)
    edit("learner/report.py", '"""', '"""Edited. ')
    fed = [[second], None]
    assert sweep(lambda: fed.pop(0), store, Workforce(1)).num_done == 1
    assert {record.versions["code"] for record in store.records()} == {before}
    assert list((store.root / "sweeps").iterdir()) == []
    fed = [[third], None]
    sweep(lambda: fed.pop(0), store, Workforce(1))
    record = store.record(third)
    assert record is not None
    assert record.versions["code"] == code() != before


def test_a_run_that_failed_is_tried_again_with_the_source_of_today(
    store: Store, request_for: RequestFor, edit: Edit
) -> None:
    request = request_for()
    begin = planned(store, request)[request.key]
    store.add(request, failed_record(request, "a mistake"))
    edit("learner/report.py", '"""', '"""Edited. ')
    assert planned(store, request)[request.key].package == code() != begin.package


def test_a_part_that_is_edited_in_mid_sweep_does_not_reach_it(
    store: Store, small_spec: Path, tmp_path: Path
) -> None:
    asked = own_part(small_spec, tmp_path / "ideas", share=0.5)
    undisturbed = execute(asked)
    edits = count()

    def edit_all(_event: object) -> None:
        if next(edits) == 0:  # its worker has imported neither yet, or both
            for path in (tmp_path / "ideas").glob("*.py"):
                path.write_text("raise SystemExit('edited')")

    assert sweep([asked], store, Workforce(1), on_event=edit_all).failed == ()
    record = store.record(asked)
    assert record is not None
    assert (record.correct, record.spec) == (undisturbed.correct, undisturbed.spec)


def test_a_snapshot_that_is_gone_is_an_error_that_says_what_to_do(
    store: Store, request_for: RequestFor, edit: Edit
) -> None:
    request = request_for()
    begin = planned(store, request)[request.key]
    edit("learner/report.py", '"""', '"""Edited. ')
    shutil.rmtree(package_folder(store, begin.package))
    with pytest.raises(StoreError, match=r"is not there.*give the command with --fresh"):
        sweep([request], store, Workforce(1))
    fresh = CodeOfSweep(store, is_fresh=True)
    fresh.plan([request])
    assert fresh.of(request).package == code()


def test_a_sweep_of_workers_that_speak_otherwise_is_refused(
    store: Store, request_for: RequestFor, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(store, request_for())
    monkeypatch.setattr(begun, "SPEAKS", 0)
    with pytest.raises(StoreError, match=r"another version of recollect .*Finish it with that"):
        planned(store, request_for())


def test_a_damaged_note_of_a_sweep_is_an_error_that_says_what_to_do(
    store: Store, request_for: RequestFor
) -> None:
    planned(store, request_for())
    (note,) = (store.root / "sweeps").iterdir()
    note.write_text("{")
    with pytest.raises(StoreError, match=r"is damaged .*remove it: the runs .* begin anew"):
        planned(store, request_for())


# --- what the tests need --------------------------------------------------------------------------


def planned(store: Store, *wanted: Request) -> dict[str, Snapshot]:
    """Begin a sweep, and return the code of each of its runs."""
    begun = CodeOfSweep(store)
    begun.plan(wanted)
    return {request.key: begun.of(request) for request in wanted}


def stopped_after_one(wanted: list[Request], store: Store) -> None:
    """Begin a sweep, and stop it once the first run is done and before the second begins."""
    planned(store, *wanted)
    assert sweep(wanted[:1], store, Workforce(1)).num_done == 1


PART = """
from dataclasses import dataclass

from amounts import DOUBLE
from recollect.rules import Rule


@dataclass(frozen=True)
class Half(Rule):
    share: float

    def __call__(self, gram):
        weights = gram.new_full((len(gram),), self.share / (len(gram) - 1))
        weights[0] = DOUBLE - 1 - self.share
        return weights
"""


def own_part(spec: Path, folder: Path, *, share: float) -> Request:
    folder.mkdir()
    (folder / "idea.py").write_text(PART)
    (folder / "amounts.py").write_text("DOUBLE = 2\n")
    settings = [
        f"methods.mine.rule={folder}/idea.py:Half",
        "methods.mine.base=er-p",
        f"methods.mine.share={share}",
    ]
    (cell,) = cells(load_spec(spec, overrides=settings), methods=["mine"])
    return requests([cell], [0])[0]
