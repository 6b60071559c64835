from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from recollect.experiments.records.store import Store
from recollect.experiments.running.execute import execute, failed_record
from recollect.experiments.running.missing import missing_runs
from recollect.experiments.specs.request import Request

RequestFor = Callable[..., Request]


def test_what_is_missing_is_told_by_cell_with_the_time_of_its_own_runs(
    request_for: RequestFor, tmp_path: Path
) -> None:
    store = Store(tmp_path / "store")
    asked = [request_for(method).cell for method in ("er", "van", "gss")]
    made = execute(request_for("er"))
    for seed, seconds in ((0, 1.0), (2, 8.0), (3, 3.0)):
        store.add(request_for("er", seed), replace(made, seed=seed, cpu_seconds=seconds))
    for seed in range(5):
        record = replace(made, seed=seed, spec_hash=request_for("van").cell.spec_hash)
        store.add(request_for("van", seed), record)
    store.add(request_for("gss"), failed_record(request_for("gss"), "it broke"))
    er, gss = missing_runs(asked, range(5), store)
    assert (er.cell.method, er.seeds, er.num_there) == ("er", (range(1, 2), range(4, 5)), 3)
    assert (er.seconds, er.total_seconds) == (3.0, 6.0)
    assert (gss.cell.method, gss.seeds, gss.num_there) == ("gss", (range(5),), 0)
    assert (gss.seconds, gss.total_seconds) == (None, None)


def test_what_other_code_made_is_missing_to_a_fresh_sweep_only(
    request_for: RequestFor, tmp_path: Path
) -> None:
    store, cell = Store(tmp_path / "store"), request_for("er").cell
    made = execute(request_for("er"))
    older = replace(made, seed=1, versions=made.versions | {"code": "yesterday's"})
    store.add(request_for("er"), made)
    store.add(request_for("er", 1), older)
    assert missing_runs([cell], range(2), store) == []
    (runs,) = missing_runs([cell], range(2), store, is_fresh=True)
    assert (runs.seeds, runs.num_there) == ((range(1, 2),), 1)


def test_a_cell_never_run_takes_the_time_of_the_same_method_with_other_settings(
    request_for: RequestFor, tmp_path: Path
) -> None:
    store = Store(tmp_path / "store")
    made = execute(request_for("er"))
    other = replace(request_for("er").cell, capacity=99)
    store.add(request_for("er"), replace(made, cpu_seconds=7.0))
    (runs,) = missing_runs([other], range(1), store)
    assert (runs.num_there, runs.seconds) == (0, 7.0)


def test_nothing_asked_for_is_nothing_missing(tmp_path: Path) -> None:
    assert missing_runs([], range(3), Store(tmp_path)) == []


def test_seeds_beyond_those_asked_for_count_for_nothing(
    request_for: RequestFor, tmp_path: Path
) -> None:
    store, made = Store(tmp_path / "store"), execute(request_for("er"))
    for seed in (3, 9, 10):
        store.add(request_for("er", seed), replace(made, seed=seed))
    (runs,) = missing_runs([request_for("er").cell], range(5, 10**12), store)
    assert runs.seeds == (range(5, 9), range(11, 10**12))
    assert (runs.num_there, runs.num_runs) == (2, 10**12 - 7)
