"""Images go through convolutions channels last where the model can take it, with equal results."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from recollect import Learner, method
from recollect.models import reduced_resnet18, seeded


class Watched(nn.Module):
    """A small convolutional net that remembers the order its feature maps came in."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.second, self.head = nn.Conv2d(8, 6, 3, stride=2), nn.Linear(6 * 9, 4)
        self.orders: list[bool] = []

    @override
    def forward(self, images: Tensor) -> Tensor:
        maps = self.second(F.relu(self.norm(self.first(images))))
        self.orders.append(maps.is_contiguous(memory_format=torch.channels_last))
        return self.finish(maps)

    def finish(self, maps: Tensor) -> Tensor:
        return self.head(maps.flatten(1))


class Viewing(Watched):
    """Takes only the usual order."""

    @override
    def finish(self, maps: Tensor) -> Tensor:
        return self.head(maps.view(len(maps), -1))


class Reaching(Watched):
    """Reads the storage, whatever the order."""

    @override
    def finish(self, maps: Tensor) -> Tensor:
        return self.head(maps.as_strided((len(maps), 54), (54, 1)))


class ViewingInTraining(Watched):
    """Refuses the order in one mode only."""

    @override
    def finish(self, maps: Tensor) -> Tensor:
        return self.head(maps.view(len(maps), -1) if self.training else maps.flatten(1))


def batches(number: int = 4) -> list[tuple[Tensor, Tensor]]:
    rng = torch.Generator().manual_seed(3)
    return [
        (torch.rand(5, 3, 8, 8, generator=rng), torch.randint(4, (5,), generator=rng))
        for _ in range(number)
    ]


def learner_on(model: nn.Module, name: str = "er-pc-mir") -> Learner:
    options = {"candidates": 8} if name.endswith("mir") else {}
    sgd = torch.optim.SGD(model.parameters(), lr=0.05)
    return method(name, model, sgd, capacity=12, replay=4, seed=0, **options)


def test_convolutions_get_images_channels_last_and_parameters_stay_as_they_lie() -> None:
    model = Watched()
    learner = learner_on(model)
    learner.observe(*batches()[0])
    model.orders.clear()
    learner.observe(*batches()[1])
    learner.predict(batches()[2][0])
    assert model.orders
    assert all(model.orders)
    assert all(parameter.is_contiguous() for parameter in model.parameters())


@pytest.mark.parametrize("kind", [Viewing, Reaching, ViewingInTraining])
def test_a_model_that_needs_the_usual_order_gets_it(kind: type[Watched]) -> None:
    model = kind()
    learner = learner_on(model)
    learner.predict(batches()[0][0])  # the order settled here must also do for training
    learner.observe(*batches()[0])
    model.orders.clear()
    learner.observe(*batches()[1])
    assert not any(model.orders)


@pytest.mark.parametrize("name", ["er", "er-p", "er-pc-mir", "gss"])
def test_the_order_changes_results_by_rounding_only(name: str) -> None:
    usual, other = learner_on(seeded(Viewing, 0), name), learner_on(seeded(Watched, 0), name)
    for batch in batches():
        usual.observe(*batch)
        other.observe(*batch)
    for a, b in zip(usual.model.parameters(), other.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_settling_the_order_leaves_statistics_and_randomness_alone() -> None:
    model = seeded(Watched, 0)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    learner_on(model).predict(batches()[0][0])
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)


def test_a_resumed_learner_predicts_to_the_bit_before_its_first_step(tmp_path: Path) -> None:
    def build() -> Learner:
        return learner_on(seeded(lambda: reduced_resnet18(4), 0), "er-p")

    rng = torch.Generator().manual_seed(1)
    images = torch.rand(6, 3, 32, 32, generator=rng)
    first = build()
    first.observe(images, torch.tensor([0, 1, 2, 3, 0, 1]))
    first.save(tmp_path / "learner")
    second = build()
    second.load(tmp_path / "learner")
    assert torch.equal(first.predict(images), second.predict(images))
