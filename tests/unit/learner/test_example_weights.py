from typing import Any

import pytest
import torch
from tests.unit.learner.support import CLASSES, SHAPE, model, sgd
from torch import Tensor

from recollect import Learner, method


def learner(name: str = "er", kind: str = "mlp", **options: Any) -> Learner:
    parts = model(kind)
    return method(name, parts, sgd(parts), capacity=12, replay=4, seed=0, **options)


def batch(step: int) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(step)
    return torch.rand(4, *SHAPE, generator=rng), torch.randint(CLASSES, (4,), generator=rng)


def trained(one: Learner, weights: Any, steps: int = 8) -> list[Tensor]:
    for step in range(steps):
        one.observe(*batch(step), weights=weights)
    return [parameter.detach().clone() for parameter in one.model.parameters()]


@pytest.mark.parametrize("kind", ["mlp", "batch norm"])
@pytest.mark.parametrize("name", ["er", "er-p", "er-mir", "gss", "a-gem"])
def test_weights_of_one_change_nothing(name: str, kind: str) -> None:
    plain = trained(learner(name, kind), None)
    for found, expected in zip(trained(learner(name, kind), [1] * 4), plain, strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", ["er", "er-w", "er-cb"])
def test_weights_that_are_all_alike_act_on_replay_as_on_the_batch(name: str) -> None:
    """Then they are a factor of the learning rate, if stored examples keep theirs."""
    parts = model()
    faster = method(name, parts, sgd(parts, lr=0.3), capacity=12, replay=4, seed=0)
    for found, expected in zip(
        trained(learner(name), torch.full((4,), 3.0)), trained(faster, None), strict=True
    ):
        torch.testing.assert_close(found, expected)


def test_an_example_of_weight_zero_teaches_nothing_even_when_it_is_replayed() -> None:
    one = learner()
    before = [parameter.detach().clone() for parameter in one.model.parameters()]
    after = trained(one, [0.0] * 4)
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_weights_given_later_leave_earlier_examples_at_one_and_come_back_from_a_checkpoint(
    tmp_path: Any,
) -> None:
    one = learner()
    one.observe(*batch(0))
    one.observe(*batch(1), weights=[0.5, 2, 3, 4])
    one.save(tmp_path / "c.ckpt")
    again = learner()
    again.load(tmp_path / "c.ckpt")
    for memory in (one.memory, again.memory):
        assert memory is not None
        held = memory.declared("weight", torch.arange(8))
        assert held is not None
        assert held.tolist() == [1, 1, 1, 1, 0.5, 2, 3, 4]
    one.observe(*batch(2))
    again.observe(*batch(2))
    for a, b in zip(one.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("weights", "error", "match"),
    [
        ([1.0], ValueError, r"`weights` has shape \(1,\) for 4 examples"),
        ([1, 1, 1, -1], ValueError, "negative or not finite"),
        ([1, 1, 1, float("nan")], ValueError, "negative or not finite"),
        (["a"] * 4, TypeError, "`weights` is a list that holds no numbers"),
    ],
)
def test_weights_that_make_no_sense_are_refused_and_nothing_changes(
    weights: Any, error: type[Exception], match: str
) -> None:
    one = learner()
    with pytest.raises(error, match=match):
        one.observe(*batch(0), weights=weights)
    assert one.step == 0
    assert one.memory is not None
    assert one.memory.declared("weight", torch.arange(0)) is None
