from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from recollect.experiments.execute import execute, failed_record
from recollect.experiments.missing import missing_runs
from recollect.experiments.request import Request
from recollect.experiments.store import Store

RequestFor = Callable[..., Request]


def test_what_is_missing_is_told_by_cell_with_the_time_of_its_own_runs(
    request_for: RequestFor, tmp_path: Path
) -> None:
    store = Store(tmp_path / "store")
    asked = [request_for(method, seed) for seed in range(5) for method in ("er", "van", "gss")]
    made = execute(request_for("er"))
    for seed, seconds in ((0, 1.0), (2, 8.0), (3, 3.0)):
        store.add(request_for("er", seed), replace(made, seed=seed, cpu_seconds=seconds))
    for seed in range(5):
        record = replace(made, seed=seed, spec_hash=request_for("van").cell.spec_hash)
        store.add(request_for("van", seed), record)
    store.add(request_for("gss"), failed_record(request_for("gss"), "it broke"))
    er, gss = missing_runs(asked, store)
    assert (er.cell.method, er.seeds, er.num_there) == ("er", (1, 4), 3)
    assert (er.seconds, er.total_seconds) == (3.0, 6.0)
    assert (gss.cell.method, gss.seeds, gss.num_there) == ("gss", (0, 1, 2, 3, 4), 0)
    assert (gss.seconds, gss.total_seconds) == (None, None)


def test_a_cell_never_run_takes_the_time_of_the_same_method_with_other_settings(
    request_for: RequestFor, tmp_path: Path
) -> None:
    store = Store(tmp_path / "store")
    made = execute(request_for("er"))
    other = replace(request_for("er").cell, capacity=99)
    store.add(request_for("er"), replace(made, cpu_seconds=7.0))
    (runs,) = missing_runs([Request(other, 0, "")], store)
    assert (runs.num_there, runs.seconds) == (0, 7.0)


def test_nothing_asked_for_is_nothing_missing(tmp_path: Path) -> None:
    assert missing_runs([], Store(tmp_path)) == []
