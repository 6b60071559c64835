"""A learner that was copied, or pickled and read back, goes on as the one it was made from."""

import copy
import pickle
from collections.abc import Callable

import pytest
import torch
from tests.unit.learner.support import differences, fingerprint, learner, run, sgd, stream
from torch import nn

from recollect import METHODS, Learner, Memory


def read_back(world: Learner) -> Learner:
    copied = pickle.loads(pickle.dumps(world))
    assert isinstance(copied, Learner)
    return copied


WAYS: dict[str, Callable[[Learner], Learner]] = {"pickled": read_back, "copied": copy.deepcopy}


def momentum(net: nn.Module) -> torch.optim.Optimizer:
    return sgd(net, momentum=0.9)


def adam(net: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(net.parameters(), lr=0.01)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", METHODS)
def test_a_copy_goes_on_as_the_learner_it_was_made_from(name: str, way: str) -> None:
    kind = ("mlp", "batch norm", "dropout")[list(METHODS).index(name) % 3]
    optimizer = (sgd, momentum, adam)[list(METHODS).index(name) // 3 % 3]
    batches = stream(9)
    world = run(learner(name, kind, optimizer=optimizer), batches[:5])
    twin = WAYS[way](world)
    assert differences(fingerprint(world), fingerprint(twin)) == []
    run(world, batches[5:])
    run(twin, batches[5:])
    assert differences(fingerprint(world), fingerprint(twin)) == []


@pytest.mark.parametrize("way", WAYS)
def test_what_a_copy_learns_does_not_reach_the_original(way: str) -> None:
    batches = stream(6)
    world = run(learner("er-c"), batches[:4])
    before = fingerprint(world)
    run(WAYS[way](world), batches[4:])
    assert differences(before, fingerprint(world)) == []


@pytest.mark.parametrize("way", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy])
def test_the_columns_of_a_copied_memory_are_those_it_saves(way: Callable[[Memory], Memory]) -> None:
    memory = Memory(4)
    memory.write(torch.arange(2), torch.zeros(2, 3), torch.tensor([1, 2]), arrived_at=1)
    copied = way(memory)
    copied.mark_replayed(torch.tensor([0]))
    copied.score[1] = 0.5
    tensors, _ = copied.state()
    assert tensors["times_replayed"].tolist() == [1, 0]
    assert tensors["score"].tolist() == [0.0, 0.5]
    assert memory.times_replayed.tolist() == [0, 0, 0, 0]
