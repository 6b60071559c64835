"""Where BatchNorm mixes examples, a rule's weights go on losses: the update is a gradient."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.learner.support import Batch, contents, learner, run, sgd, stream
from torch import Tensor, nn
from torch.nn import functional as F

from recollect import Learner
from recollect.errors import CheckpointError

DOUBLE = torch.float64


def weighed_step(
    net: nn.Module, incoming: Batch, replayed: Batch, weights: Tensor | None, *, passes: str
) -> None:
    """Step along the gradient of weights[0] * mean(incoming losses) + weights[1:] . losses."""
    optimizer = sgd(net)
    optimizer.zero_grad()
    if weights is None:  # nothing to replay yet
        F.cross_entropy(net(incoming[0]), incoming[1]).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return
    count = len(incoming[1])
    if passes == "joint":
        logits = net(torch.cat((incoming[0], replayed[0])))
        first, second = logits[:count], logits[count:]
    else:
        first, second = net(incoming[0]), net(replayed[0])
    losses = F.cross_entropy(second, replayed[1], reduction="none")
    objective = weights[0] * F.cross_entropy(first, incoming[1]) + weights[1:] @ losses
    objective.backward()  # type: ignore[no-untyped-call]
    optimizer.step()


@pytest.mark.parametrize("passes", ["joint", "separate"])
@pytest.mark.parametrize("name", ["er-p", "er-pc-mir", "a-gem"])
def test_the_update_is_the_gradient_of_the_weighed_losses(name: str, passes: str) -> None:
    world = learner(name, "batch norm", dtype=DOUBLE, passes=passes)
    twin = copy.deepcopy(world.model)
    uneven = 0
    for batch in stream(8, dtype=DOUBLE):
        inputs, labels = contents(world)
        (update,) = world.observe(*batch).updates
        slots, weights = update.replayed_slots, update.weights
        weighed_step(twin, batch, (inputs[slots], labels[slots]), weights, passes=passes)
        uneven += weights is not None and bool(weights[1:].std() > 1e-3)
    assert uneven or name == "a-gem"  # which weighs all replayed examples alike
    torch.testing.assert_close(world.model.state_dict(), twin.state_dict(), rtol=1e-8, atol=1e-10)


def turn_of_scale(weighs: str) -> float:
    """Return how much of an update lies along weights whose length BatchNorm makes irrelevant."""
    options: dict[str, Any] = {"step_size": 5.0, "norm_floor": 0.1, "weighs": weighs}
    world = run(learner("er-p", "batch norm", dtype=DOUBLE, **options), stream(4, dtype=DOUBLE))
    kernel = world.model.get_parameter("0.weight")
    before = kernel.detach().clone()
    world.observe(*stream(1, seed=5, dtype=DOUBLE)[0])
    moved = kernel.detach() - before
    return float(F.cosine_similarity(before.flatten(), moved.flatten(), dim=0).abs())


def test_only_weighed_losses_leave_the_scale_that_batch_norm_takes_out() -> None:
    assert turn_of_scale("losses") < 1e-3  # not zero: BatchNorm adds eps to variances
    assert turn_of_scale("contributions") > 1e-2


@pytest.mark.parametrize("passes", ["joint", "separate"])
@pytest.mark.parametrize("weighs", ["losses", "contributions"])
def test_with_the_weights_of_er_both_are_er(weighs: str, passes: str) -> None:
    batches = stream(3, dtype=DOUBLE)
    er, other = (
        learner(name, "batch norm", dtype=DOUBLE, passes=passes, weighs=weighs)
        for name in ("er", "a-gem")
    )
    other.__dict__["rule"] = _AsEr()
    for world in (er, other):
        run(world, batches)
    torch.testing.assert_close(
        er.model.state_dict(), other.model.state_dict(), rtol=1e-8, atol=1e-10
    )


class _AsEr:
    needs = "matrix"
    groups = None

    def __call__(self, gram: Tensor) -> Tensor:
        weights = torch.full_like(gram[0], 1 / (len(gram) - 1))
        weights[0] = 1
        return weights


@pytest.mark.parametrize("kind", ["mlp", "dropout"])
def test_where_examples_do_not_mix_nothing_changes(kind: str) -> None:
    first, second = (
        run(learner("er-p", kind, weighs=weighs), stream(6))
        for weighs in ("losses", "contributions")
    )
    assert _same(first, second)


def _same(first: Learner, second: Learner) -> bool:
    states = first.model.state_dict(), second.model.state_dict()
    return all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`weighs` is 'both'; choose 'losses' or 'contributions'"):
        learner("er-p", weighs="both")


def test_a_checkpoint_keeps_what_is_weighed_only_where_it_matters(tmp_path: Path) -> None:
    path = tmp_path / "learner"
    for kind, matters in (("mlp", False), ("batch norm", True)):
        saved = run(learner("er-p", kind, weighs="contributions"), stream(3))
        saved.model.eval()  # saving does not depend on the mode
        saved.save(path)
        other = learner("er-p", kind, weighs="losses")
        if matters:
            with pytest.raises(CheckpointError, match="weighs: the checkpoint has contributions"):
                other.load(path)
        else:
            other.load(path)
        learner("er-p", kind, weighs="contributions").load(path)


def test_a_report_holds_no_graph() -> None:
    learning = learner("er-p", "batch norm")
    for inputs, labels in stream(3):
        (update,) = learning.observe(inputs, labels).updates
        found = (update.losses, update.outputs, update.gram, update.weights)
        assert not any(tensor.requires_grad for tensor in found if tensor is not None)
