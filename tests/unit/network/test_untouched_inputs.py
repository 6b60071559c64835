"""The memory keeps what arrived, and the caller's batch stays what it was."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.unit.learner.support import (
    CAPACITY,
    OPTIONS,
    REPLAY,
    differences,
    fingerprint,
    model,
    run,
    sgd,
    stream,
)
from torch import Tensor, nn

from recollect import Learner, method

LABELS = torch.tensor([0, 1, 2])
MESSAGE = r"`inputs` was changed in place .*`x / 255` .* `x.div_\(255\)`"


def build(
    name: str = "er",
    *,
    net: nn.Module | None = None,
    transform: Callable[[Any], object] | None = None,
    **options: Any,
) -> Learner:
    net = model() if net is None else net
    chosen = {"capacity": CAPACITY, "replay": REPLAY, **OPTIONS.get(name, {}), **options}
    return method(name, net, sgd(net), transform=transform, **chosen)


def in_place(images: Tensor) -> Tensor:
    return images.div_(255)


@pytest.mark.parametrize("kind", ["mlp", "batch norm"])
@pytest.mark.parametrize("passes", ["joint", "separate"])
@pytest.mark.parametrize("name", ["van", "er", "er-p", "er-pc-mir", "gss"])
def test_a_transform_that_works_in_place_is_refused(name: str, passes: str, kind: str) -> None:
    world = build(name, net=model(kind), transform=in_place, passes=passes)
    before = fingerprint(world)
    with pytest.raises(ValueError, match=MESSAGE):
        world.observe(torch.full((3, 1, 4, 4), 255.0), LABELS)
    assert differences(before, fingerprint(world)) == []


@pytest.mark.parametrize("name", ["er", "er-c", "er-mir", "er-pc-mir", "gss"])
def test_one_that_starts_to_work_in_place_spoils_nothing_in_memory(name: str) -> None:
    works_in_place = False

    def transform(images: Tensor) -> Tensor:
        return images.div_(255) if works_in_place else images / 255

    options: dict[str, Any] = {"margins": "all"} if name == "er-c" else {}
    world = build(name, transform=transform, **options)
    run(world, stream(4))
    before = fingerprint(world)
    works_in_place = True
    for batch in stream(4, seed=1):
        kept = batch[0].clone()
        try:
            world.observe(*batch)
        except ValueError as error:
            assert "changed in place" in str(error)  # noqa: PT017 - not every step looks alone
            assert differences(before, fingerprint(world)) == []
        else:
            assert torch.equal(batch[0], kept)
        before = fingerprint(world)


def test_a_model_that_works_in_place_on_its_inputs_is_refused() -> None:
    net = nn.Sequential(nn.Flatten(), nn.ReLU(inplace=True), nn.Linear(16, 4))
    with pytest.raises(ValueError, match=MESSAGE):
        run(build(net=net), stream(1))


def test_in_place_work_on_a_copy_is_nobodys_business() -> None:
    net = nn.Sequential(nn.Flatten(), nn.ReLU(inplace=True), nn.Linear(16, 4))
    world = build(net=net, transform=lambda images: images.clone().div_(2))
    run(world, stream(4))
    assert world.step == 4


@pytest.mark.parametrize("batch_size", [None, 2])
@pytest.mark.parametrize("kind", ["mlp", "batch norm"])
def test_predict_refuses_a_transform_that_works_in_place(kind: str, batch_size: int | None) -> None:
    world = build(net=model(kind), transform=in_place)
    before = fingerprint(world)
    with pytest.raises(ValueError, match=MESSAGE):
        world.predict(torch.full((3, 1, 4, 4), 255.0), batch_size=batch_size)
    assert differences(before, fingerprint(world)) == []


@pytest.mark.parametrize(
    "inputs",
    [
        lambda: (torch.ones(3, 16), torch.ones(3, 16)),
        lambda: {"a": torch.ones(3, 16), "b": torch.ones(3, 16)},
    ],
    ids=["tuple", "dict"],
)
def test_every_tensor_of_structured_inputs_is_watched(inputs: Callable[[], Any]) -> None:
    class Sum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(16, 4)

        def forward(self, a: Tensor, b: Tensor) -> Tensor:
            return self.body(a + b.mul_(2))

    with pytest.raises(ValueError, match=MESSAGE):
        build(net=Sum()).observe(inputs(), LABELS)


def test_inputs_made_in_inference_mode_are_learnt_from_and_kept_as_they_came() -> None:
    with torch.inference_mode():
        inputs = torch.full((3, 1, 4, 4), 255.0)
    world = build(transform=in_place)
    with pytest.raises(ValueError, match=MESSAGE):
        world.observe(inputs, LABELS)
    assert bool((inputs == 255).all())
    world = build(net=model("batch norm"))
    world.observe(inputs, LABELS)
    assert world.memory is not None
    stored, _ = world.memory.read(torch.arange(3))
    assert isinstance(stored, Tensor)
    assert bool((stored == 255).all())


def test_predict_takes_inputs_made_in_inference_mode() -> None:
    world = build()
    with torch.inference_mode():
        assert world.predict(torch.zeros(3, 1, 4, 4)).shape == (3, 4)
