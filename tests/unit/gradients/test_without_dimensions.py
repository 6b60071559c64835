"""Parameters without dimensions, such as a learnt temperature."""

from typing import Any

import pytest
import torch
from tests.unit.gradients.measuring import assert_equals_the_oracle, network
from tests.unit.learner.support import OPTIONS, WITH_MEMORY, sgd, stream
from torch import Tensor, nn

from recollect import method


class Temperature(nn.Module):
    """Logits times a number that is learnt."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(16, 4)
        self.temperature = nn.Parameter(torch.tensor(1.3))

    def forward(self, x: Tensor) -> Tensor:
        return self.temperature * self.body(x.flatten(1))


class OnlyANumber(nn.Module):
    """Nothing to learn but one number."""

    def __init__(self) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(1.3))

    def forward(self, x: Tensor) -> Tensor:
        return self.temperature * x.flatten(1)[:, :4]


@pytest.mark.parametrize("kind", [Temperature, OnlyANumber])
@pytest.mark.parametrize("incoming", [0, 4])
def test_a_number_that_is_learnt_has_the_oracles_gradients(
    kind: type[nn.Module], incoming: int
) -> None:
    torch.manual_seed(0)
    owner = network(kind().double())
    assert_equals_the_oracle(owner, stream(3, size=7, dtype=torch.float64), incoming=incoming)


# Whatever scales all outputs alike cannot matter to SCR, which compares directions.
SCALED = [name for name in WITH_MEMORY if name != "scr"]


@pytest.mark.parametrize("passes", ["joint", "separate"])
@pytest.mark.parametrize("name", SCALED)
def test_every_method_learns_a_number(name: str, passes: str) -> None:
    torch.manual_seed(0)
    model = Temperature()
    options: dict[str, Any] = {"capacity": 12, "replay": 4, "passes": passes} | dict(
        OPTIONS.get(name, {})
    )
    learner = method(name, model, sgd(model), seed=0, **options)
    for batch in stream(6):
        learner.observe(*batch)
    assert abs(model.temperature.item() - 1.3) > 1e-4


def test_groups_of_gradients_hold_a_number() -> None:
    torch.manual_seed(0)
    model = Temperature()
    options: dict[str, Any] = {"capacity": 12, "replay": 4, "groups": 2, "passes": "grouped"}
    learner = method("er-p", model, sgd(model), seed=0, **options)
    for batch in stream(4):
        learner.observe(*batch)
    assert abs(model.temperature.item() - 1.3) > 1e-4
