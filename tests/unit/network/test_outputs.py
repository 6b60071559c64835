"""The loss takes whatever the model returns."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.unit.learner.support import CAPACITY, OPTIONS, REPLAY, Batch, model, run, sgd, stream
from torch import Tensor, nn
from torch.distributions import Categorical
from torch.nn import functional as F
from typing_extensions import override

from recollect import Learner, Memory, method


class Answering(nn.Module):
    """A model that says its logits in some way of its own."""

    def __init__(self, say: Callable[[Tensor], object], kind: str = "mlp") -> None:
        super().__init__()
        self.body, self.say = model(kind), say

    @override
    def forward(self, inputs: Tensor) -> object:
        return self.say(self.body(inputs))


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits, labels, reduction="none")


# What the model says, and the loss that takes it.
WAYS: dict[str, tuple[Callable[[Tensor], object], Callable[[Any, Tensor], Tensor]]] = {
    "a distribution": (
        lambda logits: Categorical(logits=logits),
        lambda said, labels: -said.log_prob(labels),
    ),
    "logits and nothing": (
        lambda logits: (logits, None),
        lambda said, labels: cross_entropy(said[0], labels),
    ),
    "logits and a number": (
        lambda logits: (logits, 0.01 * logits.square().mean()),
        lambda said, labels: cross_entropy(said[0], labels) + 0 * said[1],
    ),
    "classes first": (
        lambda logits: logits.T,
        lambda said, labels: cross_entropy(said.T, labels),
    ),
}


def build(name: str, way: str, **options: Any) -> Learner:
    say, loss = WAYS[way]
    net = Answering(say)
    chosen = {"capacity": CAPACITY, "replay": REPLAY, **OPTIONS.get(name, {}), **options}
    return method(name, net, sgd(net), loss=loss, **chosen)


@pytest.mark.parametrize("passes", ["joint", "separate"])
@pytest.mark.parametrize("name", ["van", "er", "er-mir"])
@pytest.mark.parametrize("way", WAYS)
def test_outputs_of_any_kind_are_learnt_from_like_logits(way: str, name: str, passes: str) -> None:
    world = build(name, way, passes=passes)
    net = Answering(lambda logits: logits)
    options = {"capacity": CAPACITY, "replay": REPLAY, **OPTIONS.get(name, {})}
    twin = method(name, net, sgd(net), passes=passes, **options)
    run(world, stream(4))
    run(twin, stream(4))
    torch.testing.assert_close(world.model.state_dict(), twin.model.state_dict())


@pytest.mark.parametrize("way", ["a distribution", "logits and nothing", "logits and a number"])
def test_a_report_has_no_outputs_where_there_is_no_row_an_example(way: str) -> None:
    world = build("er", way)
    for batch in stream(2):
        update = world.observe(*batch).updates[0]
        assert update.outputs is None
        assert update.incoming_outputs is None
        assert update.incoming_losses.shape == (5,)


@pytest.mark.parametrize("passes", ["joint", "separate"])
def test_nested_rows_are_reported(passes: str) -> None:
    net = Answering(lambda logits: {"logits": logits, "more": (logits.exp(),)})
    world = Learner(
        net,
        sgd(net),
        memory=Memory(CAPACITY),
        passes=passes,  # type: ignore[arg-type]
        loss=lambda said, labels: cross_entropy(said["logits"], labels),
    )
    first, second = stream(2)
    world.observe(*first)
    expected = net(second[0])
    found = world.observe(*second).updates[0].incoming_outputs
    torch.testing.assert_close(found["logits"], expected["logits"].detach())
    torch.testing.assert_close(found["more"][0], expected["more"][0].detach())


@pytest.fixture
def few() -> Batch:
    return stream(1, size=3)[0]


@pytest.mark.parametrize("way", WAYS)
def test_predict_returns_what_the_model_returns(way: str, few: Batch) -> None:
    world = build("er", way)
    assert type(world.predict(few[0])) is type(world.model(few[0]))


@pytest.mark.parametrize("way", WAYS)
def test_predict_in_parts_refuses_what_cannot_be_put_together(way: str, few: Batch) -> None:
    with pytest.raises(TypeError, match=r"the model returned a .*; pass `batch_size=None`"):
        build("er", way).predict(few[0], batch_size=2)


def test_margins_of_outputs_that_are_no_logits_are_refused(few: Batch) -> None:
    net = nn.Sequential(nn.Flatten(0), nn.Unflatten(0, (8, -1)), nn.Linear(6, 2))
    world = method("er-c", net, sgd(net), loss=lambda outputs, labels: outputs.sum() + 0.0 * labels)
    with pytest.raises(TypeError, match="measures margins, but the model's outputs are not one"):
        world.observe(*few)
