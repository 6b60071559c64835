"""How a learner answers: by outputs, by class means, by averaged weights."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.learner.support import (
    CLASSES,
    SHAPE,
    differences,
    fingerprint,
    model,
    run,
    sgd,
    stream,
)
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from recollect import Learner, Memory
from recollect.errors import CheckpointError
from recollect.models import seeded, with_projection
from recollect.predictors import AveragedWeights, Logits, NearestClassMean, Predictor, View
from recollect.retrieval import Uniform
from recollect.rules import Rule

STREAM = stream(12, seed=5, dtype=torch.float64)
INPUTS = torch.randn(7, *SHAPE, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def answering(predictor: Predictor, kind: str = "mlp", **options: Any) -> Learner:
    net = options.pop("net", None) or model(kind, dtype=torch.float64)
    options.setdefault("optimizer", sgd)
    optimizer = options.pop("optimizer")(net)
    return Learner(
        net, optimizer, memory=Memory(12), retrieval=Uniform(4), predictor=predictor, **options
    )


KINDS = ["mlp", "batch norm", "dropout"]
PREDICTORS = [Logits, NearestClassMean, AveragedWeights]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("build", PREDICTORS)
def test_a_predictor_answers_and_training_does_not_see_it(
    build: type[Predictor], kind: str
) -> None:
    plain = run(answering(Logits(), kind), STREAM)
    one = answering(build(), kind)
    for batch in STREAM:
        one.observe(*batch)
        before = fingerprint(one)
        first, again = one.predict(INPUTS), one.predict(INPUTS, batch_size=3)
        torch.testing.assert_close(first, again)
        assert fingerprint(one) == before
    assert torch.equal(one.model(INPUTS), plain.model(INPUTS)) or kind == "dropout"
    for mine, theirs in zip(one.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("build", PREDICTORS)
def test_a_saved_predictor_goes_on_to_the_same_answers(
    build: type[Predictor], kind: str, tmp_path: Path
) -> None:
    one = run(answering(build(), kind), STREAM[:6])
    one.save(tmp_path / "c.ckpt")
    again = answering(build(), kind)
    again.load(tmp_path / "c.ckpt")
    net = model(kind, dtype=torch.float64)
    rebuilt = Learner.from_checkpoint(tmp_path / "c.ckpt", net, sgd(net))
    assert type(rebuilt.predictor) is build
    for other in (again, rebuilt):
        assert torch.equal(other.predict(INPUTS), one.predict(INPUTS))
    run(one, STREAM[6:])
    for other in (again, rebuilt):
        assert torch.equal(run(other, STREAM[6:]).predict(INPUTS), one.predict(INPUTS))
        assert fingerprint(other) == fingerprint(one)


# --- nearest class mean ---------------------------------------------------------------------------


def expected_scores(one: Learner, features: nn.Module) -> Tensor:
    """Minus the squared distance to each class's mean, in a loop."""
    assert one.memory is not None
    stored, labels = one.memory.read(torch.arange(len(one.memory)))
    with torch.no_grad():
        known, asked = (F.normalize(features(x), dim=1) for x in (stored, INPUTS))
    shape = len(INPUTS), int(labels.max()) + 1
    scores = torch.full(shape, torch.finfo(torch.float64).min, dtype=torch.float64)
    for label in torch.unique(labels).tolist():
        mean = known[labels == label].mean(0)
        mean = mean / mean.norm()
        scores[:, label] = -((asked - mean) ** 2).sum(1)
    return scores


def test_the_nearest_class_mean_is_that_of_the_features_in_front_of_the_last_layer() -> None:
    one = run(answering(NearestClassMean()), STREAM)
    assert isinstance(one.model, nn.Sequential)
    torch.testing.assert_close(one.predict(INPUTS), expected_scores(one, one.model[:-1]))


def test_the_features_of_another_layer_can_be_asked_for() -> None:
    one = run(answering(NearestClassMean(layer="1")), STREAM)
    torch.testing.assert_close(one.predict(INPUTS), expected_scores(one, nn.Flatten()))
    assert "1" not in one.model._modules or not one.model.get_submodule("1")._forward_pre_hooks


def test_features_lie_in_front_of_a_projection() -> None:
    net = seeded(lambda: with_projection(model(), width=5), 0).double()
    one = run(answering(NearestClassMean(), net=net), STREAM)
    assert isinstance(net, nn.Sequential)
    torch.testing.assert_close(one.predict(INPUTS), expected_scores(one, net[:-1]))


def test_a_layer_that_is_not_there_is_refused() -> None:
    one = run(answering(NearestClassMean(layer="head")), STREAM[:2])
    with pytest.raises(ValueError, match=r"`layer` is 'head', which the model does not have"):
        one.predict(INPUTS)


def test_means_are_taken_once_until_a_step_or_a_change_of_what_is_stored() -> None:
    passed: list[int] = []

    class Counting(nn.Module):
        @override
        def __call__(self, inputs: Tensor) -> Tensor:
            passed.append(len(inputs))
            return inputs.flatten(1)

    net = nn.Sequential(Counting(), nn.Linear(16, CLASSES)).double()
    one = run(answering(NearestClassMean(), net=net), STREAM)

    def asked() -> list[int]:
        passed.clear()
        one.predict(INPUTS)
        return list(passed)

    assert asked() == [12, 7]
    assert asked() == [7]
    one.observe(*STREAM[0])
    assert asked() == [12, 7]
    assert asked() == [7]
    assert one.memory is not None
    one.memory.forget(slots=[2])
    assert asked() == [11, 7]
    with torch.no_grad():
        next(net.parameters()).mul_(1.1)
    assert asked() == [11, 7]


def test_class_means_need_a_memory_with_examples() -> None:
    net = model()
    with pytest.raises(ValueError, match="NearestClassMean predicts from stored examples, but"):
        Learner(net, sgd(net), predictor=NearestClassMean())
    with pytest.raises(ValueError, match="the memory holds none yet; call `observe` first"):
        answering(NearestClassMean()).predict(INPUTS)


def test_a_class_that_is_not_stored_is_never_the_answer() -> None:
    one = answering(NearestClassMean())
    one.observe(torch.randn(4, *SHAPE).double(), torch.tensor([0, 3, 3, 0]))
    assert set(one.predict(INPUTS).argmax(1).tolist()) <= {0, 3}
    assert bool(torch.isfinite(one.predict(INPUTS)).all())


# --- averaged weights -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["mlp", "batch norm"])
def test_averaged_weights_are_the_equation_step_by_step(kind: str) -> None:
    one = answering(AveragedWeights(decay=0.8), kind)
    averages: dict[str, Tensor] = {}
    for step, batch in enumerate(STREAM, start=1):
        one.observe(*batch)
        kept = min(0.8, (step - 1) / (step + 8))
        for name, now in one.model.state_dict().items():
            before = averages.get(name, now)
            whole = not now.is_floating_point()
            averages[name] = now.clone() if whole else kept * before + (1 - kept) * now
    other = model(kind, dtype=torch.float64)
    other.load_state_dict(averages)
    other.eval()
    torch.testing.assert_close(one.predict(INPUTS), other(INPUTS).detach())
    assert not torch.equal(one.predict(INPUTS), one.model.eval()(INPUTS))


class Failing(Rule):
    """A rule that works until it is told to fail."""

    fails = False

    @override
    def __call__(self, gram: Tensor) -> Tensor:
        if Failing.fails:
            raise ArithmeticError("planted")
        return torch.ones_like(gram[0]) / len(gram)


def test_a_step_that_fails_moves_no_average() -> None:
    one = run(answering(AveragedWeights(), rule=Failing(), iterations=2), STREAM[:5])
    before, answers = fingerprint(one), one.predict(INPUTS)
    Failing.fails = True
    try:
        with pytest.raises(ArithmeticError, match="planted"):
            one.observe(*STREAM[5])
    finally:
        Failing.fails = False
    assert differences(fingerprint(one), before) == differences(before, before)
    assert torch.equal(one.predict(INPUTS), answers)


@pytest.mark.parametrize("decay", [-0.1, 1.0, True, "most"])
def test_a_decay_that_averages_nothing_is_refused(decay: Any) -> None:
    with pytest.raises(ValueError, match=r"`decay` is .*; pass a number from 0 to below 1"):
        AveragedWeights(decay)


def test_another_predictor_is_refused_and_may_be_named(tmp_path: Path) -> None:
    one = run(answering(AveragedWeights()), STREAM[:3])
    one.save(tmp_path / "c.ckpt")
    other = answering(Logits())
    with pytest.raises(CheckpointError, match=r"predictor: the checkpoint has .*AveragedWeights"):
        other.load(tmp_path / "c.ckpt")
    other.load(tmp_path / "c.ckpt", changed=["predictor"])
    assert torch.equal(other.predict(INPUTS), one.model.eval()(INPUTS).detach())


class Shouting(Predictor):
    """A predictor of the user's."""

    @override
    def __call__(self, inputs: object, view: View) -> object:
        assert isinstance(view, View)
        with view.with_weights(zeros_of(view)):
            nothing = view.outputs(inputs)
        return 2 * view.outputs(inputs) + nothing


def zeros_of(view: View) -> Mapping[str, Tensor]:
    assert view.memory is not None
    return {"1.weight": torch.zeros(12, 16).double(), "3.weight": torch.zeros(4, 12).double()}


def test_a_predictor_of_ones_own_looks_at_the_model_with_other_weights() -> None:
    one = run(answering(Shouting()), STREAM)
    net = one.model
    assert isinstance(net, nn.Sequential)
    last = net[-1]
    assert isinstance(last, nn.Linear)
    torch.testing.assert_close(
        one.predict(INPUTS), (2 * net(INPUTS) + last.bias).detach(), rtol=1e-12, atol=1e-12
    )
    before = fingerprint(one)
    one.predict(INPUTS)
    assert fingerprint(one) == before
