"""What is told without importing the parts is what the parts themselves say."""

import inspect
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from recollect import METHODS, Learner
from recollect.choices import LEARNER, LEARNER_CODE, NEEDS, OPTIONS, ROWS, Option, options_of
from recollect.choices import PARTS as KINDS
from recollect.cli import app
from recollect.datasets import CATALOGUE
from recollect.datasets.sources.listing import LISTING
from recollect.experiments.specs.method_options import option_defaults, option_types
from recollect.experiments.specs.method_tables import read_method
from recollect.experiments.specs.part_checks import read_with_parts
from recollect.experiments.specs.tables import LearnerTable
from recollect.learner.saved.checks import CHANGEABLE
from recollect.methods import needs_of


@pytest.mark.parametrize("name", METHODS)
def test_the_options_of_a_method_are_those_of_its_parts_with_their_types_and_defaults(
    name: str,
) -> None:
    told = options_of(name)
    assert {key: option.kind for key, option in told.items()} == option_types(METHODS[name])
    assert {key: option.default for key, option in told.items()} == option_defaults(METHODS[name])
    assert list(told) == list(option_types(METHODS[name]))


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_read_the_same_with_its_parts_and_without(name: str) -> None:
    tables = {name: {"lr": 0.1, "found": "by hand"}}
    assert read_method(name, tables) == read_with_parts(name, tables, shared={})


PARTS = {
    kind.__name__: (part, kind)
    for method in METHODS.values()
    for part, kind in method.kinds.items()
    if kind is not None
}
NUMBERS = (-1e9, -1.0, -1e-9, 0, 1e-9, 0.5, 1, 1 + 1e-9, 2, 3.5, 1e9)
NUMBERED = [
    (name, key, option)
    for name, options in OPTIONS.items()
    for key, option in options.items()
    if option.kind in (int, float, int | None)
]


@pytest.mark.parametrize(("name", "key", "option"), NUMBERED)
def test_a_part_refuses_the_numbers_that_are_told_to_be_wrong_and_no_others(
    name: str, key: str, option: Option
) -> None:
    part, kind = PARTS[name]
    for number in NUMBERS:
        if option.kind is not float and number != int(number):
            continue
        value = float(number) if option.kind is float else int(number)
        given = {key: value} if part != "retrieval" else {key: value, "replay": 1}
        if option.complaint(value) is None:
            kind(**given)
        else:
            with pytest.raises(ValueError, match=f"`{key}` is "):
                kind(**given)


def test_every_part_that_is_told_of_is_one_of_a_method() -> None:
    used = {part for row in ROWS.values() for part in row.parts.values()}
    assert used == set(OPTIONS)


def test_what_each_part_needs_is_made_of_what_it_declares() -> None:
    assert {name: needs_of(kind) for name, (_, kind) in PARTS.items()} == NEEDS


def test_the_page_of_methods_says_the_same() -> None:
    page = (Path(__file__).parents[2] / "docs" / "methods.md").read_text()
    told = page.partition("<!-- begin: needs -->")[2].partition("<!-- end: needs -->")[0]
    rows = [f"| `{name}` | {needs} |" for name, needs in NEEDS.items() if needs != "nothing"]
    assert told.strip().splitlines()[2:] == rows


def test_the_list_of_data_sets_is_the_catalogue() -> None:
    assert list(LISTING) == list(CATALOGUE)
    for name, listed in LISTING.items():
        assert listed.about is CATALOGUE[name].about
        assert listed.about.name == name
        assert listed.locate() == CATALOGUE[name].locate()


def test_methods_are_listed_with_parts_and_options() -> None:
    ended = CliRunner().invoke(app, ["methods"])
    assert ended.exit_code == 0
    lines = ended.output.splitlines()
    (er_pc,) = [line.split() for line in lines if line.startswith("er-pc ")]
    assert er_pc[-3:] == ["ConfidenceReservoir", "Uniform", "PrincipalDirection"]
    assert [line.split()[1:] for line in lines if line.startswith("GSSGreedy")] == [
        ["batches", "int", "10"],
        ["batch_size", "int", "10"],
        ["gradients", "of", "stored", "examples"],
    ]


def test_methods_are_told_to_a_machine() -> None:
    told = json.loads(CliRunner().invoke(app, ["methods", "--json"]).output)["methods"]
    assert [method["name"] for method in told] == list(METHODS)
    (er_w,) = [method for method in told if method["name"] == "er-w"]
    assert er_w["parts"]["rule"] == "WeightedSum"
    assert er_w["options"] == {"replay_weight": {"part": "rule", "type": "float", "default": 3.0}}


def test_the_options_of_a_learner_are_told_as_it_has_them() -> None:
    own = inspect.signature(Learner).parameters
    assert {name: own[name].default for name in LEARNER} == {
        n: o.default for n, o in LEARNER.items()
    }
    parts = {"model", "optimizer", "memory", "seed", *KINDS}
    only_looks = {"measure_all"}  # which changes no number, so no spec and no record states it
    assert set(own) == parts | set(LEARNER) | set(LEARNER_CODE) | only_looks


def test_a_spec_can_say_every_option_of_a_learner_and_a_checkpoint_may_differ_in_each() -> None:
    for name, option in LEARNER.items():
        field = LearnerTable.model_fields[name]
        assert field.default in (None, option.default)  # without one, the benchmark has its own
    assert set(LEARNER) <= set(CHANGEABLE)
