"""Trials that several processes share, that survive a kill, and that are the same every time."""

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.unit.experiments.tuning.conftest import MakePlan, drive, make, search_in

from recollect.benchmarks import BenchmarkSegment
from recollect.errors import ConfigError, RecollectError
from recollect.experiments.records.compare_records import without_times
from recollect.experiments.records.scores import recent_accuracy
from recollect.experiments.running.events import Event
from recollect.experiments.running.execute import execute
from recollect.experiments.tuning.choose import by_identity, chosen, standings
from recollect.experiments.tuning.journal import FILE, trials_there
from recollect.experiments.tuning.plan import Plan
from recollect.experiments.tuning.search import Search


def told(search: Search) -> dict[str, list[tuple[object, ...]]]:
    """Everything that a search decides and finds."""
    return {
        method: [
            (t.number, t.settings, t.origin, t.state, t.value, t.curves, t.stop_below)
            for t in search.journal.trials(method)
        ]
        for method in search.plan.methods
    }


def test_a_search_makes_its_trials_then_its_finalists_and_chooses(
    plan_of: MakePlan, tmp_path: Path
) -> None:
    search = search_in(tmp_path / "search", plan_of())
    drive(search)
    study, kept = search.study(), by_identity(search.store.records())
    rows = standings(study, "er", kept)
    assert [row.trial.number for row in rows] == list(range(1, 9))
    assert sum(row.is_finalist for row in rows) == 2
    best = chosen(rows)
    assert best is not None
    assert best.fresh.accuracies.keys() == {2000, 2001}
    assert {record.seed for record in kept.values()} == {1000, 1001, 2000, 2001}
    assert search.more() is None
    # Every trial of the journal is over, with the accuracy of its records.
    for past, row in zip(search.journal.trials("er"), rows, strict=True):
        assert past.value == (row.first.mean if past.state == "complete" else None)


def test_a_run_of_a_search_never_reads_test_examples(
    plan_of: MakePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(_segment: BenchmarkSegment) -> None:
        raise AssertionError("test data was read")

    monkeypatch.setattr(BenchmarkSegment, "test", property(read))
    search = search_in(tmp_path / "search", plan_of())
    drive(search, most=3)
    records = search.store.records()
    assert {record.status for record in records} == {"done"}
    assert {json.loads(record.spec)["evaluation"]["on"] for record in records} == {"validation"}


def test_a_pruned_run_is_below_the_median_of_earlier_trials_and_is_kept_as_pruned(
    plan_of: MakePlan, tmp_path: Path
) -> None:
    # Rates that do not learn, after rates that do.
    known = [{"lr": rate} for rate in (0.05, 0.06, 0.07, 0.08, 0.09, 1e-4, 2e-4, 3e-4)]
    plan = plan_of(
        overrides=(f"tune.methods.er.known={toml(known)}", "tune.space.lr.log=[0.0001, 0.3]")
    )
    search = search_in(tmp_path / "search", plan)
    drive(search)
    trials = search.journal.trials("er")
    assert [trial.state for trial in trials[:5]] == ["complete"] * 5
    assert {trial.state for trial in trials[5:]} == {"pruned"}
    first = trials[5]
    spec_hash = plan.cell("er", first.settings).spec_hash
    (record,) = [r for r in search.store.records() if r.spec_hash == spec_hash]
    assert (record.status, record.correct[5:]) == ("pruned", ())
    assert "is below" in (record.error or "")
    recent = recent_accuracy([(point.seen, point.accuracy) for point in record.curve])
    assert recent < dict(first.stop_below[1000])[record.curve[-1].seen]
    # Up to there it is the very run that nobody prunes.
    whole = execute(search_in(tmp_path / "other", plan)._asked("er", first.settings, 1000, {}))
    assert whole.status == "done"
    assert whole.curve[: len(record.curve)] == record.curve
    assert record.seed == 1000  # the other seed was not begun


def toml(known: list[dict[str, float]]) -> str:
    return "[" + ", ".join(f"{{ lr = {settings['lr']} }}" for settings in known) + "]"


def test_a_search_without_pruning_prunes_nothing(plan_of: MakePlan, tmp_path: Path) -> None:
    search = search_in(tmp_path / "search", plan_of(prune=False))
    drive(search)
    assert {trial.state for trial in search.journal.trials("er")} == {"complete"}
    assert Counter(record.seed for record in search.store.records())[1000] == 8


def test_a_trial_that_diverges_failed_and_the_search_goes_on(
    plan_of: MakePlan, tmp_path: Path
) -> None:
    plan = plan_of(overrides=("tune.methods.er.known=[{ lr = 1e30 }]",), trials=3)
    search = search_in(tmp_path / "search", plan)
    drive(search)
    trials = search.journal.trials("er")
    assert trials[0].state == "failed"
    assert search.ended[0].state == "failed"
    assert "NonFiniteError" in (search.ended[0].reason or "")
    rows = standings(search.study(), "er", by_identity(search.store.records()))
    assert not rows[0].is_chosen


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[object, ...]]]:
    from tests.unit.experiments.tuning.conftest import SPEC

    from recollect.experiments.tuning.plan import Wanted, make_plan

    folder = tmp_path_factory.mktemp("reference")
    (folder / "small.toml").write_text(SPEC)
    plan = make_plan(Wanted(folder / "small.toml", methods=("er", "er-c")))
    search = search_in(folder / "search", plan)
    drive(search)
    return told(search)


def test_a_search_stopped_anywhere_goes_on_to_the_same_trials(
    plan_of: MakePlan, tmp_path: Path, reference: dict[str, list[tuple[object, ...]]]
) -> None:
    plan, folder = plan_of("er", "er-c"), tmp_path / "search"
    made, most = 0, 1
    while True:
        search = search_in(folder, plan)
        now = drive(search, most=most)
        made += now
        if now < most:
            break
        requests = search.more()  # taken in hand, and never made
        search.close()
        if requests is None:  # the last trial was the last that this one made
            break
        most = most % 5 + 1
    assert told(search) == reference
    assert made == len(search.store.records())  # nothing twice


def test_two_processes_share_the_trials_and_find_what_one_would(
    plan_of: MakePlan, tmp_path: Path, reference: dict[str, list[tuple[object, ...]]]
) -> None:
    plan, folder = plan_of("er", "er-c"), tmp_path / "search"
    searches = [search_in(folder, plan), search_in(folder, plan)]
    made = [0, 0]
    running = set(searches)
    while running:
        for index, search in enumerate(searches):
            search._look_again = 0.0
            requests = search.more()
            if requests is None:
                running.discard(search)
                continue
            for request in requests:
                if search.store.record(request) is None:  # a finalist's run that both ask for
                    make(search, request)
                    made[index] += 1
                else:
                    search.note(Event("done", request))
    assert told(searches[0]) == told(searches[1]) == reference
    assert sum(made) == len(searches[0].store.records())
    assert min(made) > 0


def test_no_two_processes_have_one_trial_and_a_dead_ones_is_taken_up(
    plan_of: MakePlan, tmp_path: Path
) -> None:
    plan, folder = plan_of(), tmp_path / "search"
    one, other = search_in(folder, plan), search_in(folder, plan)
    numbers = [one.journal.take("er"), other.journal.take("er")]
    assert [past.number for past in numbers if past is not None] == [0, 1]
    assert one.journal.take("er") is None  # the third waits for the first
    one.close()  # as the kernel does when it dies
    taken = other.journal.take("er")
    assert taken is not None
    assert (taken.number, taken.settings) == (0, {"lr": 0.05})
    assert trials_there(plan, folder) == {"er": 2}


def test_another_search_in_the_same_folder_is_refused(plan_of: MakePlan, tmp_path: Path) -> None:
    folder = tmp_path / "search"
    search_in(folder, plan_of())
    for other in (
        plan_of(seeds=1),
        plan_of(overrides=("stream.batch_size=5",)),
        plan_of(overrides=("tune.space.lr={ log = [0.01, 0.2] }",)),
        plan_of(prune=False),
    ):
        with pytest.raises(ConfigError, match="was searched for in another way"):
            search_in(folder, other)
    # More trials, more fresh seeds and other methods are the same search.
    search_in(folder, plan_of("er", "er-c", trials=30, finalists=5, fresh_seeds=6))


def test_more_trials_continue_a_search_that_was_over(plan_of: MakePlan, tmp_path: Path) -> None:
    folder = tmp_path / "search"
    first = search_in(folder, plan_of(trials=4))
    drive(first)
    before = told(first)["er"]
    search = search_in(folder, plan_of(trials=6))
    drive(search)
    assert told(search)["er"][:4] == before
    assert len(told(search)["er"]) == 6


def test_a_line_that_a_killed_process_cut_short_is_taken_away(
    plan_of: MakePlan, tmp_path: Path
) -> None:
    folder, plan = tmp_path / "search", plan_of(trials=3)
    first = search_in(folder, plan)
    drive(first, most=1)
    first.close()
    with (folder / FILE).open("ab") as journal:
        journal.write(b'{"op_code":4,"worker_id":"x","stu')
    search = search_in(folder, plan)
    drive(search)
    assert [trial.state for trial in search.journal.trials("er")] == ["complete"] * 3
    for line in (folder / FILE).read_bytes().splitlines():
        json.loads(line)


def test_a_damaged_journal_is_told(plan_of: MakePlan, tmp_path: Path) -> None:
    folder, plan = tmp_path / "search", plan_of(trials=3)
    drive(search_in(folder, plan), most=1)
    content = (folder / FILE).read_bytes()
    (folder / FILE).write_bytes(b"{nonsense\n" + content)
    with pytest.raises(RecollectError, match="is damaged"):
        search_in(folder, plan)


def test_optuna_opens_the_journal_and_sees_trials_and_their_curves(
    plan_of: MakePlan, tmp_path: Path
) -> None:
    import optuna
    from optuna.storages.journal import JournalFileBackend

    folder = tmp_path / "search"
    search = search_in(folder, plan_of())
    drive(search)
    storage = optuna.storages.JournalStorage(JournalFileBackend(str(folder / FILE)))
    study = optuna.load_study(study_name="er", storage=storage)
    assert len(study.trials) == 8
    best = max(t.value for t in search.journal.trials("er") if t.value is not None)
    assert study.best_value == best
    curve = search.journal.trials("er")[0].curves[1000]
    steps = study.trials[0].intermediate_values
    assert [steps[step] for step in range(len(curve))] == [accuracy for _, accuracy in curve]


def test_importances_are_shares_of_the_settings_that_were_searched(
    plan_of: MakePlan, tmp_path: Path
) -> None:
    plan: Plan = plan_of("er-c", prune=False)
    search = search_in(tmp_path / "search", plan)
    drive(search)
    shares = search.study().importances["er-c"]
    assert set(shares) == set(plan.methods["er-c"].space)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)


def test_runs_of_a_search_are_those_of_any_other_command(plan_of: MakePlan, tmp_path: Path) -> None:
    search = search_in(tmp_path / "search", plan_of())
    requests = search.more()
    assert requests
    (request,) = requests
    make(search, request)
    record = search.store.record(request)
    assert record is not None
    assert without_times(record) == without_times(execute(request))
