"""Rules that need per-example gradients train the models people have, with nothing said of them.

A warning is an error here, so no model falls back to one backward pass per example.
"""

import copy
from collections.abc import Callable
from contextlib import nullcontext
from itertools import combinations, product

import pytest
import torch
from tests.unit.gradients.architectures import ARCHITECTURES, CLASSES, Architecture, images
from tests.unit.gradients.other_libraries import OTHERS
from torch import nn

from recollect import Learner, method
from recollect.models import reduced_resnet18

#: Each asks something else of the gradients: a direction, one product, lengths, cosines.
RULES = ("er-p", "a-gem", "er-clip", "gss")
#: Precision (half or not) and dropout (on or off).
SETTINGS = ((False, True), (True, True), (False, False), (True, False))
NAMES = (
    "encoder",
    "encoder, sequence first",
    "attention",
    "lstm, two layers",
    "lstm, both directions",
    "gru",
    "experts",
    "checkpointed",
    "weight norm on a convolution",
)
WITHOUT_HALF = ("lstm, packed", "gru, packed")  # torch itself does not run them in half precision


def resnet() -> nn.Module:
    head = nn.Conv2d(4, 3, 1)
    return nn.Sequential(head, nn.Upsample(32), reduced_resnet18(CLASSES, width=4))


MODELS: dict[str, Architecture] = {
    **{name: ARCHITECTURES[name] for name in (*NAMES, *WITHOUT_HALF)},
    **OTHERS,
    "resnet": (resnet, images),
}
CASES = [
    (name, half and name not in WITHOUT_HALF, dropout, RULES[(number + place) % len(RULES)])
    for number, name in enumerate(MODELS)
    for place, (half, dropout) in enumerate(SETTINGS)
]


def test_every_pair_of_model_precision_dropout_and_rule_is_met() -> None:
    choices = (tuple(MODELS), (False, True), (False, True), RULES)
    met = {(i, j, case[i], case[j]) for case in CASES for i, j in combinations(range(4), 2)}
    wanted = {
        (i, j, one, other)
        for i, j in combinations(range(4), 2)
        for one, other in product(choices[i], choices[j])
    }
    assert wanted - met == {(0, 1, name, True) for name in WITHOUT_HALF}


def learner_of(name: str, rule: str) -> tuple[Learner, Callable[[], torch.Tensor]]:
    torch.manual_seed(0)
    make, give = MODELS[name]
    model = make()
    with torch.no_grad():
        model(give())  # lazy layers take shape
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    sgd = torch.optim.SGD(trained, lr=0.1)
    return method(rule, model, sgd, capacity=12, replay=4, seed=0), give


@pytest.mark.parametrize(("name", "half", "dropout", "rule"), CASES)
def test_a_rule_trains_what_er_trains(name: str, half: bool, dropout: bool, rule: str) -> None:
    learner, give = learner_of(name, rule)
    if not dropout:
        for module in learner.model.modules():  # attention of other libraries drops out by itself
            module.training = isinstance(module, nn.BatchNorm2d)
        learner.model.training = True  # which is what `observe` asks for
    before = copy.deepcopy(learner.model.state_dict())
    for _ in range(4):
        inputs = give()
        labels = torch.randint(CLASSES, (len(inputs),))
        with torch.autocast("cpu", dtype=torch.bfloat16) if half else nullcontext():
            learner.observe(inputs, labels)
    assert learner.step == 4
    trained = [n for n, p in learner.model.named_parameters() if p.requires_grad]
    after = learner.model.state_dict()
    assert any(not torch.equal(before[n], after[n]) for n in trained)


@pytest.mark.slow
def test_a_compiled_model_learns_what_it_learns_uncompiled() -> None:
    """It is measured as it was written; ER's passes and predictions stay compiled."""
    learnt = []
    for compiled in (False, True):
        torch.manual_seed(0)
        model: nn.Module = nn.Sequential(nn.Linear(5, 8), nn.LayerNorm(8), nn.Linear(8, CLASSES))
        if compiled:
            model = torch.compile(model, backend="aot_eager")  # type: ignore[assignment]
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        learner = method("er-p", model, sgd, capacity=12, replay=4, seed=0)
        for _ in range(4):
            learner.observe(torch.randn(6, 5), torch.randint(CLASSES, (6,)))
        learnt.append([parameter.detach().clone() for parameter in model.parameters()])
    for plain, other in zip(*learnt, strict=True):
        torch.testing.assert_close(plain, other)
