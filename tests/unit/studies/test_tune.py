"""A study sees validation data only, gives every method the same, and chooses by fresh seeds."""

import dataclasses
import math
import re
from pathlib import Path

import pytest
from studies import tune
from studies.kept import identity, read_kept, write_kept
from studies.tuning.choose import Kept, chosen, finalists, standings
from studies.tuning.page import page
from studies.tuning.settings import BEGIN, END, method_table, write_settings
from studies.tuning.space import Study, draw, load_study

from recollect.benchmarks import BenchmarkSegment
from recollect.errors import ConfigError
from recollect.experiments.records.record import Record
from recollect.experiments.running.execute import execute
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.spec import load_spec

STUDY = """
[budget]
trials = 3
seeds = 2
finalists = 2
fresh_seeds = 2

[spec]
benchmark = "mnist-split"
memory = [20]

[spec.stream]
examples_per_segment = 20
validation_per_segment = 20

[spec.evaluation]
on = "validation"
points = 2

[ranges.step]
lr = { log = [0.01, 0.1] }

[methods.er]
ranges = ["step"]
known = [{ lr = 0.05 }]

[methods.mine]
base = "er-c"
ranges = ["step"]
space = { pick = { choice = ["highest", "proportional"] }, within_class = { choice = [true] } }
known = [{ lr = 0.05 }, { lr = 1e30 }]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    written = tmp_path / "study.toml"
    written.write_text(STUDY)
    return written


@pytest.fixture
def study(path: Path) -> Study:
    return load_study(path)


def kept_with(study: Study, method: str, accuracies: dict[int, tuple[int, int]]) -> dict:  # type: ignore[type-arg]
    """Make records: for each trial the right answers of 100 in the first and the second stage."""
    found = []
    template = execute(tune.requests_for(study, study.trials[method][:1], range(1000, 1001))[0])
    for number, correct in accuracies.items():
        cell = study.trials[method][number - 1].cell
        stages = (study.budget.first_seeds, study.budget.second_seeds)
        for seeds, right in zip(stages, correct, strict=True):
            found += [
                dataclasses.replace(
                    template,
                    spec_hash=cell.spec_hash,
                    seed=seed,
                    method=method,
                    correct=((right,),),
                    total=(100,),
                )
                for seed in seeds
            ]
    return {identity(record): record for record in found}


@pytest.mark.parametrize("evaluation", ['on = "test"', "points = 2"])
def test_a_study_on_test_data_is_refused(path: Path, evaluation: str) -> None:
    path.write_text(STUDY.replace('on = "validation"\npoints = 2', evaluation))
    with pytest.raises(ConfigError, match="chosen on validation data only"):
        load_study(path)


def test_a_trial_on_test_data_is_refused_wherever_it_came_from(study: Study) -> None:
    trial = study.trials["er"][0]
    leaking = dataclasses.replace(trial.cell, evaluation={**trial.cell.evaluation, "on": "test"})
    with pytest.raises(ConfigError, match="evaluated on 'test'"):
        tune.requests_for(study, [dataclasses.replace(trial, cell=leaking)], range(1))


def test_a_run_of_a_study_never_reads_test_examples(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(_segment: BenchmarkSegment) -> None:
        raise AssertionError("test data was read")

    monkeypatch.setattr(BenchmarkSegment, "test", property(read))
    record = execute(tune.requests_for(study, study.trials["er"][:1], range(1000, 1001))[0])
    assert record.status == "done", record.error
    assert record.total == (20,) * 5


def test_every_method_has_as_many_trials_and_its_own_learning_rates(study: Study) -> None:
    assert {len(trials) for trials in study.trials.values()} == {3}
    rates = [trial.cell.optimizer["lr"] for trial in study.trials["er"]]
    assert len(set(rates)) == 3
    assert rates[0] == 0.05
    assert all(trial.cell.options["within_class"] for trial in study.trials["mine"])
    assert {trial.cell.base for trial in study.trials["mine"]} == {"er-c"}


def test_no_seed_of_a_study_is_a_seed_of_the_tables(study: Study) -> None:
    first, second = set(study.budget.first_seeds), set(study.budget.second_seeds)
    assert min(first | second) >= 1000
    assert not first & second


def test_draws_fill_every_stratum_and_never_change() -> None:
    space = {"lr": {"log": [0.01, 1.0]}, "pick": {"choice": ["a", "b"]}}
    drawn = draw(space, 8, seed="x")
    strata = sorted(int(math.log10(d["lr"] / 0.01) / 2 * 8) for d in drawn)
    assert strata == list(range(8))
    assert sorted(d["pick"] for d in drawn) == ["a"] * 4 + ["b"] * 4
    assert drawn == draw(space, 8, seed="x") != draw(space, 8, seed="y")
    assert drawn[0] == {"lr": 0.75, "pick": "b"}  # written down: records refer to trials


def test_fresh_seeds_choose_among_the_best_of_the_first(study: Study) -> None:
    kept = kept_with(study, "er", {1: (80, 60), 2: (70, 99), 3: (79, 61)})
    found = standings(study, "er", kept)
    assert [row.is_finalist for row in found] == [True, False, True]
    best = chosen(found)
    assert best is not None
    assert best.trial.number == 3


def test_a_trial_with_a_failed_run_comes_last(study: Study) -> None:
    kept = kept_with(study, "er", {1: (80, 60), 2: (20, 20), 3: (30, 30)})
    broken = next(record for record in kept.values() if record.correct == ((80,),))
    kept[identity(broken)] = dataclasses.replace(broken, status="failed", error="diverged")
    assert [trial.number for trial in finalists(study, "er", kept)] == [3, 2]


def test_nothing_is_chosen_before_a_stage_is_complete(study: Study) -> None:
    kept = kept_with(study, "er", {1: (80, 60), 2: (70, 99), 3: (79, 61)})
    some = dict(list(kept.items())[:-1])
    assert chosen(standings(study, "er", some)) is None
    assert finalists(study, "er", {}) == []


def test_a_study_runs_keeps_its_records_and_does_not_run_them_again(
    path: Path, study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tune, "study_path", lambda _name: path)
    monkeypatch.setattr(tune, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(tune, "WORK", tmp_path / "work")
    monkeypatch.setattr("sys.argv", ["tune", "small"])
    tune.main()
    kept: Kept = read_kept(tmp_path / "kept" / "small.parquet")
    failed = [record for record in kept.values() if record.status != "done"]
    assert {record.method for record in failed} == {"mine"}  # lr = 1e30 diverges and is kept
    assert len(kept) == 2 * (3 * 2 + 2 * 2)
    text = (tmp_path / "kept" / "small.md").read_text()
    assert "2 failed" in text
    assert text.count("**chosen**") == 2
    assert (tmp_path / "kept" / "small.png").read_bytes().startswith(b"\x89PNG")

    monkeypatch.setattr(tune, "sweep_shown", None)  # would fail if anything were run
    tune.main()
    assert (tmp_path / "kept" / "small.md").read_text() == text


def test_the_chosen_settings_go_into_the_spec(study: Study, tmp_path: Path) -> None:
    kept = kept_with(study, "mine", {1: (80, 60), 2: (10, 10), 3: (79, 61)})
    found = {"mine": standings(study, "mine", kept)}
    spec = tmp_path / "spec.toml"
    begin = BEGIN.format(study.name)
    spec.write_text(f'benchmark = "mnist-split"\n[methods.van]\n{begin}\nold\n{END}\n# end\n')
    write_settings(study, found, spec)
    table = load_spec(spec).methods["mine"]
    assert table.base == "er-c"
    assert table.options["within_class"] is True
    assert table.learner == {"lr": study.trials["mine"][2].cell.optimizer["lr"]}
    assert table.found is not None
    assert "trial 3" in table.found
    assert spec.read_text().endswith(f"{END}\n# end\n")
    (cell,) = cells(load_spec(spec), methods=["mine"], memory=[20])
    assert cell.options == study.trials["mine"][2].cell.options


def test_an_unfinished_study_writes_no_settings(study: Study, tmp_path: Path) -> None:
    kept = kept_with(study, "mine", {1: (80, 60), 2: (10, 10), 3: (79, 61)})
    found = {method: standings(study, method, kept) for method in study.trials}
    spec = tmp_path / "spec.toml"
    text = f'benchmark = "mnist-split"\n{BEGIN.format(study.name)}\nold\n{END}\n'
    spec.write_text(text)
    with pytest.raises(SystemExit, match="nothing is chosen for er yet"):
        write_settings(study, found, spec)
    assert spec.read_text() == text


def test_records_are_kept_without_change_of_what_a_choice_needs(
    study: Study, tmp_path: Path
) -> None:
    kept = kept_with(study, "er", {1: (80, 60)})
    write_kept(tmp_path / "kept.parquet", kept.values())
    back: dict[tuple[str, int], Record] = read_kept(tmp_path / "kept.parquet")
    assert back.keys() == kept.keys()
    assert all(back[key].correct == kept[key].correct for key in kept)
    assert read_kept(tmp_path / "nothing.parquet") == {}


def test_the_page_says_what_was_not_run(study: Study) -> None:
    found = {method: standings(study, method, {}) for method in study.trials}
    text = page(study, found, {})
    assert "study not over" in text
    assert "2 not run" in text


def test_a_method_that_was_not_searched_for_takes_over_what_was_found_for_its_parts(
    path: Path, tmp_path: Path
) -> None:
    inherited = """
[inherited.er-pc]
from = ["er", "mine"]
settings = { step_size = 3.0 }

[inherited.van]
from = ["er"]
"""
    path.write_text(STUDY + inherited)
    study = load_study(path)
    kept = kept_with(study, "er", {1: (80, 60), 2: (70, 99), 3: (79, 61)})
    kept |= kept_with(study, "mine", {1: (80, 60), 2: (10, 10), 3: (79, 61)})
    found = {method: standings(study, method, kept) for method in study.trials}
    spec = tmp_path / "spec.toml"
    spec.write_text(f'benchmark = "mnist-split"\n{BEGIN.format(study.name)}\n{END}\n')
    write_settings(study, found, spec)
    methods = load_spec(spec).methods
    assert methods["er-pc"].options["step_size"] == 3.0
    assert methods["er-pc"].options["pick"] == study.trials["mine"][2].settings["pick"]
    assert methods["er-pc"].learner == {"lr": study.trials["er"][2].settings["lr"]}
    assert methods["van"].learner == methods["er"].learner
    assert "not searched for" in str(methods["van"].found)


def test_without_fresh_seeds_the_first_ones_choose(path: Path) -> None:
    path.write_text(STUDY.replace("fresh_seeds = 2", "fresh_seeds = 0"))
    study = load_study(path)
    kept = kept_with(study, "er", {1: (70, 0), 2: (80, 0), 3: (79, 0)})
    best = chosen(standings(study, "er", kept))
    assert best is not None
    assert best.trial.number == 2
    assert "short streams" in method_table(study, best)


def test_added_trials_come_last_and_every_method_has_as_many(path: Path) -> None:
    added = STUDY.replace("fresh_seeds = 2", "fresh_seeds = 2\nadded = 1")
    path.write_text(added)
    with pytest.raises(ConfigError, match="the budget gives every method 1"):
        load_study(path)
    path.write_text(re.sub(r"(\[methods\.\w+\])", r"\1\nadded = [{ lr = 0.07 }]", added))
    study = load_study(path)
    assert [trial.origin for trial in study.trials["er"]] == ["known", "drawn", "drawn", "added"]
    assert study.trials["mine"][3].cell.optimizer["lr"] == 0.07


def test_a_study_takes_what_it_does_not_say_from_the_one_it_extends(path: Path) -> None:
    own = path.with_name("own.toml")
    own.write_text("""
extends = "study.toml"
[spec.optimizer]
name = "adam"
[ranges.step]
lr = { log = [0.001, 0.01] }
""")
    study, shared = load_study(own), load_study(path)
    assert study.budget == shared.budget
    assert {trial.cell.optimizer["name"] for trial in study.trials["er"]} == {"adam"}
    known, *drawn = study.trials["er"]
    assert known.settings == shared.trials["er"][0].settings
    assert all(0.001 < trial.settings["lr"] < 0.01 for trial in drawn)
