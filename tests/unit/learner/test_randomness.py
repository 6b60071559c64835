"""Same seed, same bits; nothing else decides."""

import pytest
import torch
from tests.unit.learner.support import (
    MODELS,
    WITH_MEMORY,
    contents,
    differences,
    fingerprint,
    learner,
    run,
    stream,
)

from recollect import METHODS


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_twice_gives_the_same_bits(name: str, kind: str) -> None:
    first, second = (run(learner(name, kind, seed=3), stream(8)) for _ in range(2))
    assert differences(fingerprint(first), fingerprint(second)) == []


@pytest.mark.parametrize("name", METHODS)
def test_torchs_global_seed_does_not_matter(name: str) -> None:
    runs = []
    for seed in (1, 2):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            world = run(learner(name, "dropout"), stream(8))
        runs.append(fingerprint(world))
    assert differences(*runs) == []


@pytest.mark.parametrize("name", METHODS)
def test_learning_leaves_torchs_global_generator_alone(name: str) -> None:
    before = torch.get_rng_state()
    run(learner(name, "dropout"), stream(4))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", WITH_MEMORY)
def test_another_seed_replays_other_slots(name: str) -> None:
    replayed = []
    for seed in (0, 1):
        world = run(learner(name, seed=seed), stream(4))
        last = world.observe(*stream(1, seed=9)[0])
        replayed.append(last.replayed_slots.tolist())
    assert replayed[0] != replayed[1]


def test_another_seed_draws_other_dropout_masks() -> None:
    first, second = (learner("van", "dropout", seed=seed) for seed in (0, 1))
    batch = stream(1)[0]
    assert first.observe(*batch).loss != second.observe(*batch).loss


def test_dropout_draws_anew_in_every_step() -> None:
    world = learner("van", "dropout", optimizer=lambda net: torch.optim.SGD(net.parameters(), lr=0))
    batch = stream(1)[0]
    assert world.observe(*batch).loss != world.observe(*batch).loss


@pytest.mark.parametrize("name", ["er-p", "er-mir", "er-p-mir", "a-gem"])
@pytest.mark.parametrize("kind", ["mlp", "dropout"])
def test_reservoirs_of_one_seed_hold_the_same_examples_whatever_rule_and_retrieval(
    name: str, kind: str
) -> None:
    plain, other = (run(learner(which, kind), stream(12)) for which in ("er", name))
    assert all(map(torch.equal, contents(plain), contents(other)))


def test_er_and_er_p_of_one_seed_replay_the_same_slots() -> None:
    plain, principal = (learner(name, "dropout") for name in ("er", "er-p"))
    for batch in stream(12):
        slots = [world.observe(*batch).replayed_slots for world in (plain, principal)]
        assert torch.equal(*slots)
