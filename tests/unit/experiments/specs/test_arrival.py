"""How a stream arrives as a spec says: blurred, repeated, long-tailed, or without waiting."""

from itertools import count
from math import floor
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.experiments.own_data import FUNCTION, write_table

from recollect.errors import ConfigError
from recollect.experiments.records.compare_records import without_times
from recollect.experiments.running.execute import Stopped, execute
from recollect.experiments.specs.build import build
from recollect.experiments.specs.cell import Cell, cells
from recollect.experiments.specs.request import Request, requests
from recollect.experiments.specs.spec import load_spec
from recollect.streams import blurred_classes, long_tailed, repeated_classes, within_budget

RULE = Path(__file__).parents[4] / "examples" / "custom_rule.py"
NUM_BATCHES = 20  # of the small spec: 5 segments of 40 examples in batches of 10


def cell_of(spec: Path, *overrides: str, method: str = "er") -> Cell:
    (cell,) = cells(load_spec(spec, overrides=overrides), methods=[method])
    return cell


def request_of(spec: Path, *overrides: str, method: str = "er", seed: int = 1) -> Request:
    (request,) = requests([cell_of(spec, *overrides, method=method)], [seed])
    return request


def test_a_spec_that_says_nothing_of_it_hashes_as_before(small_spec: Path) -> None:
    stream = cell_of(small_spec).stream
    assert stream.keys() == {
        "batch_size",
        "examples_per_segment",
        "validation_per_segment",
        "data",
    }
    # Measured costs may stay in a spec whose stream waits again.
    costly = cell_of(small_spec, "stream.cost.er=2.0")
    assert costly.spec_hash == cell_of(small_spec).spec_hash


@pytest.mark.parametrize(
    ("overrides", "change"),
    [
        (["stream.blur=0.3"], lambda s: blurred_classes(s, disjoint=0.0, blur=0.3, seed=4)),
        (
            ["stream.blur=0.3", "stream.disjoint=0.5"],
            lambda s: blurred_classes(s, disjoint=0.5, blur=0.3, seed=4),
        ),
        (["stream.repeat=0.5"], lambda s: repeated_classes(s, chance=0.5, seed=4)),
        (["stream.long_tail=0.1"], lambda s: long_tailed(s, rarest=0.1, seed=4)),
        (
            ["stream.budget=0.5", "stream.cost.er=1.5"],
            lambda s: within_budget(s, cost=1.5, budget=0.5),
        ),
        (
            ["stream.long_tail=0.5", "stream.repeat=0.5", "stream.budget=0.5"],
            lambda s: within_budget(
                repeated_classes(long_tailed(s, rarest=0.5, seed=4), chance=0.5, seed=4),
                cost=1.0,
                budget=0.5,
            ),
        ),
    ],
)
def test_the_stream_is_what_its_builder_makes_of_the_sharp_one(
    small_spec: Path, overrides: list[str], change: Any
) -> None:
    sharp = build(cell_of(small_spec), 4)[0].stream
    cell = cell_of(small_spec, *overrides)
    assert build(cell, 4)[0].stream.fingerprint == change(sharp).fingerprint
    assert build(cell, 5)[0].stream.fingerprint != change(sharp).fingerprint
    assert cell.spec_hash != cell_of(small_spec).spec_hash
    assert Cell.from_json(cell.canonical_json) == cell


def test_random_groups_are_drawn_by_the_seed(small_spec: Path) -> None:
    cell = cell_of(small_spec, 'stream.groups="random"')
    found = [[s.classes for s in build(cell, seed)[0].segments] for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]


# --- a budget -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cost", "budget"), [(1.0, 1.0), (2.0, 1.0), (1.37, 0.5), (7.0, 2.5)])
def test_a_run_sees_exactly_the_batches_that_there_is_time_for(
    small_spec: Path, cost: float, budget: float
) -> None:
    request = request_of(small_spec, f"stream.budget={budget}", f"stream.cost.er={cost}")
    record = execute(request)
    assert record.status == "done", record.error
    num_seen = 1 + floor((NUM_BATCHES - 1) * min(1, budget / cost))
    assert (record.num_steps, record.num_examples) == (num_seen, 10 * num_seen)
    assert record.curve[-1].seen == 10 * num_seen
    assert len(record.correct) == 5  # all segments are tested, whatever was missed
    told = Cell.from_json(record.spec).stream
    assert (told["budget"], told["cost"]) == (budget, cost)


def test_a_budget_that_suffices_changes_nothing(small_spec: Path) -> None:
    free, paid = (execute(request_of(small_spec, *said)) for said in ([], ["stream.budget=1.0"]))
    assert paid.correct == free.correct
    assert paid.curve == free.curve


@pytest.mark.parametrize("method", ["er", "er-pc-mir"])
@pytest.mark.parametrize("asks", [1, 2, 5, 11])
def test_a_run_under_a_budget_is_continued_to_the_same_bits(
    small_spec: Path, tmp_path: Path, method: str, asks: int
) -> None:
    said = ["stream.budget=0.7", f"stream.cost.{method}=1.3", "stream.blur=0.5"]
    request, place, asked = request_of(small_spec, *said, method=method), tmp_path / "p", count(1)
    with pytest.raises(Stopped):
        execute(request, checkpoints=place, should_stop=lambda: next(asked) >= asks)
    continued = execute(request, checkpoints=place)
    assert continued.num_resumes == 1
    assert without_times(continued) == without_times(execute(request))


def test_the_record_keeps_how_a_cost_was_found_and_it_changes_no_hash(small_spec: Path) -> None:
    said = ["stream.budget=1.0", "stream.cost.gss=3.5"]
    cell = cell_of(small_spec, *said, method="gss")
    told = cell_of(small_spec, *said, 'stream.cost.found="measured"', method="gss")
    assert told.found["stream.cost"] == "measured"
    assert told.spec_hash == cell.spec_hash
    other = cell_of(small_spec, *said[:1], "stream.cost.gss=3.6", method="gss")
    assert other.spec_hash != cell.spec_hash


@pytest.mark.parametrize(
    ("method", "overrides"),
    [
        ("van", []),
        ("gss", []),
        ("er", ["learner.iterations=3"]),
        ("er", ["methods.er.iterations=3"]),
        ("er", ['learner.augment=["RandomCrop"]']),
        ("er", ["methods.er.replay=20"]),
        ("er", ['methods.er.passes="separate"']),
        ("mine", [f"methods.mine.rule={RULE}:Surgery"]),
    ],
)
def test_only_the_unit_needs_no_cost(small_spec: Path, method: str, overrides: list[str]) -> None:
    said = [*overrides, "stream.budget=1.0"]
    with pytest.raises(ConfigError, match=rf"stream.cost.{method}: is missing; .*recollect cost"):
        cell_of(small_spec, *said, method=method)
    paid = cell_of(small_spec, *said, f"stream.cost.{method}=2.5", method=method)
    assert paid.stream["cost"] == 2.5


@pytest.mark.parametrize("overrides", [[], ["optimizer.lr=0.3", "methods.er.lr=0.2"]])
def test_the_unit_is_er_with_any_learning_rate(small_spec: Path, overrides: list[str]) -> None:
    said = [*overrides, "stream.budget=1.0", 'learner.passes="separate"', "learner.replay=5"]
    assert cell_of(small_spec, *said).stream["cost"] == 1.0
    assert cell_of(small_spec, *said, method="diverging").stream["cost"] == 1.0


# --- refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (["stream.blur=1.5"], "stream.blur: is 1.5; it should be less than or equal to 1"),
        (["stream.repeat=-1"], "stream.repeat: is -1; it should be greater than or equal to 0"),
        (["stream.long_tail=0"], "stream.long_tail: is 0; it should be greater than 0"),
        (["stream.budget=0"], "stream.budget: is 0; it should be greater than 0"),
        (["stream.budget=inf"], "stream.budget: is inf; it should be a finite number"),
        (['stream.groups="few"'], "stream.groups: is 'few'; it should be 'random'"),
        (["stream.costs.er=1"], "stream.costs: unknown key; did you mean `cost`?"),
        (["stream.cost.er=0"], "stream.cost.er: is 0; it should be greater than 0"),
        (['stream.cost.er="x"'], "stream.cost.er: is 'x'; it should be a number"),
        (["stream.cost.eer=2"], r"stream.cost.eer: has no table in \[methods\]; did you mean `er`"),
        (["stream.disjoint=0.5"], "stream.disjoint: says which classes are not blurred; give blur"),
        (["stream.repeat=0.5", "stream.blur=0.1"], "stream.repeat: does not go with blur"),
    ],
)
def test_what_cannot_arrive_is_told_with_its_place(
    small_spec: Path, overrides: list[str], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        cell_of(small_spec, *overrides)


def test_inputs_that_change_have_no_classes_that_come_again(small_spec: Path) -> None:
    small_spec.write_text(small_spec.read_text().replace("mnist-split", "mnist-permuted"))
    said = ["stream.blur=0.1", 'stream.groups="random"', "stream.disjoint=0.1"]
    with pytest.raises(ConfigError, match="has 3 problems") as error:
        cell_of(small_spec, *said)
    assert "stream.blur: is for streams of classes; mnist-permuted changes" in str(error.value)
    assert cell_of(small_spec, "stream.long_tail=0.1").stream["long_tail"] == 0.1


@pytest.mark.parametrize(
    ("of_data", "said", "told"),
    [
        ('cut = "time"\ncolumn = "day"\nsegments = 2', "repeat", r"\[data\] cuts by time"),
        ('cut = "column"\ncolumn = "city"', "blur", r"\[data\] cuts by column"),
        ("classes_per_segment = 1\nblur = 10", "blur", "does not go with data.blur"),
        ("classes_per_segment = 1", "groups", r"say in \[data\] which classes make a segment"),
    ],
)
def test_own_data_that_is_not_cut_by_class_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_data: str, said: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "trees.parquet")
    table = f'[data]\ntable = "trees.parquet"\nlabel = "kind"\n{of_data}\n'
    value = '"random"' if said == "groups" else "0.5"
    Path("my.toml").write_text(f"{table}[stream]\n{said} = {value}\n[methods.er]\n")
    with pytest.raises(ConfigError, match=f"stream.{said}: .*{told}"):
        cell_of(Path("my.toml"))


def test_own_classes_may_blur_and_so_may_those_of_a_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_data.py").write_text(FUNCTION)
    Path("my.toml").write_text('benchmark = "my_data.py:make"\n[methods.er]\n')
    blurred, sharp = (
        build(cell_of(Path("my.toml"), f"stream.blur={share}"), 0)[0].stream for share in (0.9, 0)
    )
    assert blurred.num_examples == sharp.num_examples
    assert not torch.equal(blurred.plan.order, sharp.plan.order)


def test_the_text_benchmark_is_no_data_of_ones_own(small_spec: Path) -> None:
    small_spec.write_text(small_spec.read_text().replace("mnist-split", "languages-split"))
    small_spec.write_text(small_spec.read_text().replace("[stream]", 'protocol = "own"\n[stream]'))
    built, _ = build(cell_of(small_spec), 0)
    assert built.name == "languages-split"
