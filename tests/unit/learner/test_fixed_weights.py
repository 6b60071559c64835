"""A rule whose weights are fixed saves the measuring, and has its weights all the same."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from tests.unit.learner.support import CAPACITY, REPLAY, learner, model, run, sgd, stream
from torch import Tensor
from typing_extensions import override

from recollect import Learner, Memory
from recollect.errors import NonFiniteError
from recollect.retrieval import MaximallyInterfered, Retrieval, Uniform
from recollect.rules import GradientSum, Rule
from recollect.rules.rule import Needs
from recollect.storage import Reservoir

DOUBLE = torch.float64
RETRIEVALS = {
    "uniform": Uniform(replay=REPLAY),
    "mir": MaximallyInterfered(replay=REPLAY, candidates=8),
}


@dataclass(frozen=True)
class Ranked(Rule):
    """Uneven weights that depend on nothing but how many gradients there are."""

    first: float = 0.5
    needs: ClassVar[Needs] = "nothing"

    @override
    def __call__(self, gram: Tensor) -> Tensor:
        return torch.cat((gram.new_tensor([self.first]), torch.arange(1, len(gram)) / 10))


class MeasuredRanked(Ranked):
    """The same, by way of every gradient's own."""

    needs: ClassVar[Needs] = "matrix"


def built(rule: Rule, kind: str, retrieval: Retrieval, passes: str) -> Learner:
    net = model(kind, dtype=DOUBLE)
    parts = {"memory": Memory(CAPACITY), "storage": Reservoir(), "retrieval": retrieval}
    return Learner(net, sgd(net), rule=rule, passes=passes, **parts)  # type: ignore[arg-type]


@pytest.mark.parametrize("passes", ["joint", "separate"])
@pytest.mark.parametrize("retrieval", list(RETRIEVALS))
@pytest.mark.parametrize("kind", ["mlp", "batch norm"])
def test_fixed_weights_move_the_model_as_measured_ones_do(
    kind: str, retrieval: str, passes: str
) -> None:
    batches = stream(8, dtype=DOUBLE)
    fixed, measured, plain = (
        run(built(rule, kind, RETRIEVALS[retrieval], passes), batches).model.state_dict()
        for rule in (Ranked(), MeasuredRanked(), GradientSum())
    )
    torch.testing.assert_close(fixed, measured, rtol=1e-8, atol=1e-10)
    weight = "1.weight" if kind == "mlp" else "0.weight"
    assert not torch.allclose(fixed[weight], plain[weight], rtol=1e-3)


@pytest.mark.parametrize("passes", ["joint", "separate"])
@pytest.mark.parametrize("kind", ["mlp", "batch norm"])
def test_a_replay_weight_of_one_is_experience_replay(kind: str, passes: str) -> None:
    batches = stream(8, dtype=DOUBLE)
    weighted = run(learner("er-w", kind, dtype=DOUBLE, replay_weight=1.0, passes=passes), batches)
    plain = run(learner("er", kind, dtype=DOUBLE, passes=passes), batches)
    torch.testing.assert_close(weighted.model.state_dict(), plain.model.state_dict())


def test_fixed_weights_are_checked_like_others() -> None:
    world = built(Ranked(first=float("nan")), "mlp", RETRIEVALS["uniform"], "joint")
    (first, second) = stream(2, dtype=DOUBLE)
    world.observe(*first)
    with pytest.raises(NonFiniteError, match="Ranked returned NaN or infinite weights"):
        world.observe(*second)
