"""A search is checked as a whole before anything runs, and never looks at test data."""

import dataclasses
from pathlib import Path

import pytest
from tests.unit.experiments.tuning.conftest import SPEC, MakePlan

from recollect.errors import ConfigError
from recollect.experiments.tuning.plan import Wanted, make_plan
from recollect.experiments.tuning.study import refuse_test_data
from recollect.ranges import Choice, Log

OWN = """
from dataclasses import dataclass
from typing import Annotated, Literal
from recollect.ranges import Choice, Linear, Log
from recollect.rules import Rule

@dataclass(frozen=True)
class Mine(Rule):
    gamma: Annotated[float, Log(0.1, 10.0)] = 1.0
    depth: Annotated[int, Choice(1, 2, is_usual=False)] = 1

    def __call__(self, gram):
        weights = gram.new_zeros(len(gram))
        weights[0] = self.gamma
        return weights
"""


@pytest.mark.parametrize(
    "override",
    [
        "evaluation.on=test",
        'tune.set=["evaluation.on=test"]',
        "tune.set=[\"evaluation.on='test'\"]",
    ],
)
def test_asking_for_test_data_is_an_error(plan_of: MakePlan, override: str) -> None:
    with pytest.raises(ConfigError, match=r"evaluation.on: is 'test'.*validation data only"):
        plan_of(overrides=(override,))


def test_a_cell_on_test_data_is_refused_wherever_it_came_from(plan_of: MakePlan) -> None:
    cell = plan_of().cell("er", {"lr": 0.1})
    assert cell.evaluation["on"] == "validation"
    leaking = dataclasses.replace(cell, evaluation={**cell.evaluation, "on": "test"})
    with pytest.raises(ConfigError, match="evaluated on 'test'"):
        refuse_test_data([cell, leaking])


def test_parts_declare_what_is_searched_and_the_spec_says_otherwise(plan_of: MakePlan) -> None:
    search = plan_of("er-c").methods["er-c"]
    assert list(search.space) == ["lr", "pick", "margin_weight", "margins", "negative"]
    assert search.space["lr"] == Log(0.01, 0.3)
    assert search.known == (
        {
            "lr": 0.05,
            "pick": "proportional",
            "margin_weight": 0.1,
            "margins": "insertion",
            "negative": "clamp",
        },
    )
    said = (
        "tune.space.pick=false",
        "tune.space.within_class=true",
        "tune.space.lr={ choice = [0.1, 0.05] }",
        "tune.methods.er-c.space.negative=false",
    )
    space = plan_of("er-c", overrides=said).methods["er-c"].space
    assert list(space) == ["lr", "margin_weight", "margins", "within_class"]
    assert space["lr"] == Choice(0.1, 0.05)


def test_a_part_of_the_users_brings_its_own_ranges(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    path = tmp_path / "spec.toml"
    path.write_text(SPEC + f'[methods.mine]\nrule = "{tmp_path / "mine.py"}:Mine"\n')
    plan = make_plan(Wanted(path, methods=("mine",)))
    assert list(plan.methods["mine"].space) == ["lr", "gamma"]
    assert plan.methods["mine"].space["gamma"] == Log(0.1, 10.0)
    assert plan.cell("mine", {"lr": 0.1, "gamma": 3.0}).options["gamma"] == 3.0


def test_the_learning_rate_is_looked_for_where_its_optimizer_needs_it(plan_of: MakePlan) -> None:
    space = plan_of(overrides=("optimizer.name=adam",)).methods["er"].space
    assert space["lr"] == Log(3e-4, 0.03)
    # 0.05, the protocol's, is no rate for Adam, and so no first trial.
    assert plan_of(overrides=("optimizer.name=adam",)).methods["er"].known == ()


def test_options_of_the_optimizer_are_searched_for_one_method_at_a_time(plan_of: MakePlan) -> None:
    said = ("tune.space.optimizer.momentum=true",)
    plan = plan_of(overrides=said)
    assert list(plan.methods["er"].space) == ["lr", "optimizer.momentum"]
    assert plan.cell("er", {"lr": 0.1, "optimizer.momentum": 0.9}).optimizer["momentum"] == 0.9
    with pytest.raises(ConfigError, match="search one method at a time"):
        plan_of("er", "er-c", overrides=said)


def test_known_settings_are_complete_and_in_the_ranges(plan_of: MakePlan) -> None:
    known = "tune.methods.er-c.known=[{ lr = 0.5, pick = 'highest' }, { margin_weight = 20.0 }]"
    search = plan_of("er-c", overrides=(known,)).methods["er-c"]
    assert [settings["lr"] for settings in search.known] == [0.5, 0.05]
    assert [settings["pick"] for settings in search.known] == ["highest", "proportional"]
    assert search.space["lr"] == Log(0.01, 0.5)
    assert search.space["margin_weight"] == Log(0.03, 20.0)
    assert plan_of(overrides=("tune.methods.er.known=[]",)).methods["er"].known == ()


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("tune.trails=3", "tune.trails: unknown key; did you mean `trials`"),
        ("tune.trials=0", "tune.trials: is 0"),
        ("tune.space.lrr=true", "tune.space.lrr: unknown option; did you mean `lr`"),
        ("tune.space.lr=3", "space.lr: is 3; write"),
        ("tune.space.lr={ log = [0.0, 1.0] }", "begins above 0"),
        ("tune.methods.er.space.pick=true", "space.pick: unknown option"),
        ("tune.methods.er.known=[{ pick = 'x' }]", r"known.0.pick: unknown option"),
        ("tune.methods.er.known=[{ iterations = 3 }]", "is not searched; give it a range"),
        ("tune.methods.err.known=[]", "tune.methods.err: is 'err', which has no table"),
        ("tune.inherited.er-pcc.from=['er']", "is no method of the library"),
        ("tune.inherited.er-pc.form=['er']", "unknown key"),
        ("tune.space.lr=false", "has nothing to search"),
        ("tune.space.replay={ whole = [10, 40] }", "memory: is 20, but er replays 40"),
    ],
)
def test_a_mistake_is_told_before_anything_runs(
    plan_of: MakePlan, override: str, told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        plan_of(overrides=(override,))


def test_every_mistake_of_one_kind_is_told_at_once(plan_of: MakePlan) -> None:
    with pytest.raises(ConfigError) as error:
        plan_of("er", "er-c", overrides=("tune.space.lr=3", "tune.methods.er-c.space.pick=4"))
    paths = [path for path, _ in error.value.problems]
    assert paths == [
        "tune.methods.er.space.lr",
        "tune.methods.er-c.space.lr",
        "tune.methods.er-c.space.pick",
    ]


def test_a_command_overrides_the_budget_of_the_spec(plan_of: MakePlan) -> None:
    plan = plan_of(trials=5, seeds=3)
    assert (plan.budget.trials, plan.budget.seeds, plan.budget.finalists) == (5, 3, 2)
    assert set(plan.budget.first_seeds) & set(plan.budget.second_seeds) == set()
    assert min(plan.budget.first_seeds) >= 1000


def test_a_command_of_a_trial_makes_its_very_cell(plan_of: MakePlan) -> None:
    plan = plan_of("er-c")
    settings = {**plan.methods["er-c"].example, "lr": 0.07, "pick": "highest"}
    cell = plan.cell("er-c", settings)
    command = plan.command(cell, settings, 1000)
    assert "--seeds 1000:1001" in command
    assert "--set methods.er-c.lr=0.07" in command
    assert "--set evaluation.on=validation" in command
