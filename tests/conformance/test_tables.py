"""Every part of every method passes the checks that users run on parts of their own.

Parametrised over the table of methods, so that a new row is covered on arrival.
"""

from collections.abc import Callable

import pytest

from recollect import METHODS
from recollect.objectives import (
    AsymmetricCrossEntropy,
    CrossEntropy,
    DarkExperience,
    LossFunction,
    Objective,
    SupervisedContrast,
)
from recollect.retrieval import MaximallyInterfered, Retrieval, Uniform
from recollect.rules import PrincipalDirection, ProximalRule, Rule
from recollect.storage import ClassBalanced, ConfidenceReservoir, GSSGreedy, Reservoir, Storage
from recollect.testing import check_objective, check_retrieval, check_rule, check_storage

STORAGES = {row.storage for row in METHODS.values() if row.storage is not None}
RETRIEVALS = {row.retrieval for row in METHODS.values() if row.retrieval is not None}
RULES = {row.rule for row in METHODS.values()}
OBJECTIVES = {row.objective for row in METHODS.values()}


@pytest.mark.parametrize("storage", sorted(STORAGES, key=str), ids=lambda kind: kind.__name__)
def test_every_storage_of_the_table_conforms(storage: type[Storage]) -> None:
    check_storage(storage)


@pytest.mark.parametrize("retrieval", sorted(RETRIEVALS, key=str), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("replay", [1, 4, 10])
def test_every_retrieval_of_the_table_conforms(retrieval: type[Retrieval], replay: int) -> None:
    check_retrieval(lambda: retrieval(replay=replay))  # type: ignore[call-arg]


@pytest.mark.parametrize("rule", sorted(RULES, key=str), ids=lambda kind: kind.__name__)
def test_every_rule_of_the_table_conforms(rule: type[Rule]) -> None:
    check_rule(rule())


@pytest.mark.parametrize("objective", sorted(OBJECTIVES, key=str), ids=lambda kind: kind.__name__)
def test_every_objective_of_the_table_conforms(objective: type[Objective]) -> None:
    check_objective(objective(), width=8 if objective.takes_projections else 5)


def test_the_tables_name_every_policy_there_is() -> None:
    assert {CrossEntropy, AsymmetricCrossEntropy, DarkExperience, SupervisedContrast} == OBJECTIVES
    assert {Reservoir, ConfidenceReservoir, GSSGreedy, ClassBalanced} <= STORAGES
    assert {Uniform, MaximallyInterfered} <= RETRIEVALS


# --- settings off the beaten track ----------------------------------------------------------------


@pytest.mark.parametrize("margins", ["never", "insertion", "replay", "both", "all"])
def test_confidence_reservoirs_conform_whenever_margins_are_measured(margins: str) -> None:
    check_storage(lambda: ConfidenceReservoir(margins=margins))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "build",
    [
        lambda: ConfidenceReservoir(pick="proportional"),
        lambda: ConfidenceReservoir(pick="proportional", negative="shift", margin_weight=5.0),
        lambda: ConfidenceReservoir(within_class=True, age_offset=3.0),
        lambda: ConfidenceReservoir(within_class=True, pick="proportional"),
        lambda: GSSGreedy(batches=1, batch_size=1),
        lambda: GSSGreedy(batches=3, batch_size=50),
    ],
)
def test_other_storages_conform(build: Callable[[], Storage]) -> None:
    check_storage(build)


@pytest.mark.parametrize(
    "objective",
    [
        AsymmetricCrossEntropy("unseen"),
        DarkExperience(alpha=0.0, beta=1.0),
        DarkExperience(alpha=1.0, beta=0.5),
        SupervisedContrast(temperature=2.0),
        LossFunction(lambda outputs, labels: (outputs - labels[:, None]).square()),
    ],
    ids=lambda objective: type(objective).__name__,
)
def test_other_objectives_conform(objective: Objective) -> None:
    check_objective(objective)


def test_retrieval_by_the_best_loss_conforms() -> None:
    check_retrieval(lambda: MaximallyInterfered(replay=3, candidates=9, beside="best"))


@pytest.mark.parametrize("candidates", [3, 4, 1000])
def test_maximally_interfered_retrieval_conforms_with_any_number_of_candidates(
    candidates: int,
) -> None:
    check_retrieval(lambda: MaximallyInterfered(replay=3, candidates=candidates))


@pytest.mark.parametrize(
    "rule",
    [
        PrincipalDirection(steps=50),
        PrincipalDirection(step_size=0.0),
        PrincipalDirection(norm_floor=1e-6, target_floor=1e-6, step_size=1e-3, steps=5),
        ProximalRule(lambda products, squared_length, lengths: -products.mean(), steps=3),  # noqa: ARG005
    ],
    ids=lambda rule: str(rule).split("<function")[0],
)
def test_other_rules_conform(rule: Rule) -> None:
    check_rule(rule)


@pytest.mark.parametrize("groups", [1, 2, 5])
def test_grouping_rules_conform_apart_from_the_order(groups: int) -> None:
    check_rule(PrincipalDirection(groups=groups), order_matters=True)


def test_a_grouping_rule_does_tell_places_apart() -> None:
    with pytest.raises(AssertionError, match="other weights when they changed places"):
        check_rule(PrincipalDirection(groups=2))
