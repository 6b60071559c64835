"""Storage, retrieval and rule are three free choices: every combination works as a whole."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Literal

import pytest
from tests.unit.learner.support import (
    CAPACITY,
    REPLAY,
    differences,
    fingerprint,
    model,
    run,
    sgd,
    stream,
)

from recollect import Learner, Memory
from recollect.retrieval import MaximallyInterfered, Retrieval, Uniform
from recollect.rules import AveragedProjection, GradientSum, PrincipalDirection, ProximalRule, Rule
from recollect.storage import ClassBalanced, ConfidenceReservoir, GSSGreedy, Reservoir, Storage

Passes = Literal["joint", "separate", "grouped"]

STORAGES: dict[str, Callable[[], Storage]] = {
    "reservoir": Reservoir,
    "confidence": lambda: ConfidenceReservoir(pick="proportional", margins="both"),
    "confidence, all": lambda: ConfidenceReservoir(margins="all", within_class=True),
    "gss": lambda: GSSGreedy(batches=3, batch_size=3),
    "class balanced": ClassBalanced,
}
RETRIEVALS: dict[str, Retrieval] = {
    "uniform": Uniform(REPLAY),
    "interfered": MaximallyInterfered(REPLAY, candidates=8),
}
RULES: dict[str, Rule] = {
    "sum": GradientSum(),
    "principal": PrincipalDirection(step_size=1.0, steps=3, groups=2),
    "projection": AveragedProjection(),
    "proximal": ProximalRule(lambda products, *_: -products.mean(), steps=2),
}


def combinations() -> list[tuple[str, str, str, str]]:
    """Every storage, retrieval and rule, with ways through the network in turn."""
    found = []
    for index, parts in enumerate(product(STORAGES, RETRIEVALS, RULES)):
        ways = ("joint", "separate", "grouped") if "principal" in parts else ("joint", "separate")
        found.append((*parts, ways[(index // len(RULES)) % len(ways)]))
    return found


def build(storage: str, retrieval: str, rule: str, passes: Passes) -> Learner:
    net = model("batch norm")
    return Learner(
        net,
        sgd(net, momentum=0.5),
        memory=Memory(CAPACITY),
        storage=STORAGES[storage](),
        retrieval=RETRIEVALS[retrieval],
        rule=RULES[rule],
        passes=passes,
    )


@pytest.mark.parametrize("parts", combinations(), ids=", ".join)
def test_every_combination_goes_on_from_a_checkpoint_as_if_it_had_not_stopped(
    parts: tuple[str, str, str, Passes], tmp_path: Path
) -> None:
    world, resumed, twin = build(*parts), build(*parts), build(*parts)
    batches = stream(5)
    run(twin, batches)
    run(world, batches[:3]).save(tmp_path / "it")
    resumed.load(tmp_path / "it")
    run(resumed, batches[3:])
    assert differences(fingerprint(resumed), fingerprint(twin)) == []
