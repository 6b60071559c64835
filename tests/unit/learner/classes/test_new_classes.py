"""Classes that nobody knew of: by name, and a head that widens with them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.learner.support import sgd
from torch import Tensor, nn

from recollect import LabelMap, Learner, method
from recollect.errors import CheckpointError
from recollect.models import GrowingHead, mlp, seeded, with_growing_head

NAMES = ["cat", "dog", "owl", "yak"]

OPTIMIZERS: dict[str, Callable[[nn.Module], torch.optim.Optimizer]] = {
    "sgd": sgd,
    "momentum": lambda m: sgd(m, momentum=0.9),
    "adam": lambda m: torch.optim.Adam(m.parameters(), lr=0.01),
}


def learner(name: str = "er-pc", optimizer: str = "sgd", *, width: int = 2) -> Learner:
    model = seeded(lambda: with_growing_head(mlp(6, width, hidden=(8,))), 0)
    return method(
        *(name, model, OPTIMIZERS[optimizer](model)),
        capacity=12,
        replay=4,
        seed=0,
        label_map=LabelMap(),
    )


def batch(step: int) -> tuple[Tensor, list[str]]:
    """The later, the more classes."""
    rng = torch.Generator().manual_seed(step)
    most = min(len(NAMES), 1 + step // 3)
    names = [NAMES[int(torch.randint(most, (), generator=rng))] for _ in range(5)]
    return torch.randn(5, 6, generator=rng), names


def width(one: Learner) -> int:
    (head,) = [m for m in one.model.modules() if isinstance(m, GrowingHead)]
    return head.out_features


def everything(one: Learner) -> dict[str, Any]:
    found: dict[str, Any] = {n: p.detach().clone() for n, p in one.model.state_dict().items()}
    for index, state in enumerate(one.optimizer.state.values()):
        found |= {f"{index}.{k}": v for k, v in state.items() if isinstance(v, Tensor)}
    assert one.label_map is not None
    return found | {"labels": torch.tensor([NAMES.index(str(n)) for n in one.label_map.labels])}


def alike(first: dict[str, Any], second: dict[str, Any]) -> bool:
    return first.keys() == second.keys() and all(
        torch.equal(first[key], second[key]) for key in first
    )


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", ["er", "er-pc", "er-mir", "gss", "er-cb"])
def test_new_names_get_outputs_of_their_own_on_the_way(name: str, optimizer: str) -> None:
    one = learner(name, optimizer)
    for step in range(12):
        one.observe(*batch(step))
    assert one.label_map is not None
    assert sorted(map(str, one.label_map.labels)) == NAMES
    assert width(one) == 4
    named = one.label_map.decode(one.predict(batch(20)[0]))
    assert set(named) <= set(NAMES)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_step_that_fails_forgets_the_new_class_and_the_new_output(optimizer: str) -> None:
    one = learner(optimizer=optimizer)
    for step in range(4):
        one.observe(*batch(step))
    before = everything(one)
    for bad in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="NaN or infinite"):
            one.observe(torch.full((3, 6), bad), ["owl", "yak", "cat"])
    assert alike(everything(one), before)

    def fail(*_: object) -> None:
        raise RuntimeError("in the middle of the model")

    handle = one.model.register_forward_hook(fail)
    with pytest.raises(ValueError, match="in the middle of the model"):
        one.observe(torch.zeros(3, 6), ["owl", "yak", "cat"])
    handle.remove()
    assert alike(everything(one), before)
    one.observe(*batch(4))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_wider_checkpoint_loads_into_the_model_as_it_was_built(
    optimizer: str, tmp_path: Path
) -> None:
    one = learner(optimizer=optimizer)
    for step in range(9):
        one.observe(*batch(step))
    one.save(tmp_path / "c.ckpt")
    again = learner(optimizer=optimizer)
    assert width(again) == 2
    again.load(tmp_path / "c.ckpt")
    assert alike(everything(again), everything(one))
    for step in range(9, 14):
        one.observe(*batch(step))
        again.observe(*batch(step))
    assert alike(everything(again), everything(one))


def test_a_load_that_fails_leaves_the_head_as_narrow_as_it_was(tmp_path: Path) -> None:
    one = learner()
    for step in range(9):
        one.observe(*batch(step))
    one.save(tmp_path / "c.ckpt")
    again = learner()
    again.observe(*batch(0))
    before = everything(again)

    def fail(_: object) -> None:
        raise RuntimeError("of the user's")

    again.optimizer.load_state_dict = fail  # type: ignore[method-assign, assignment]
    with pytest.raises(CheckpointError, match="nothing was loaded"):
        again.load(tmp_path / "c.ckpt")
    assert alike(everything(again), before)
    assert width(again) == 2


def test_numbers_widen_a_head_without_a_map_but_not_without_end() -> None:
    model = with_growing_head(mlp(6, 2))
    one = Learner(model, sgd(model))
    one.observe(torch.zeros(1, 6), [5])
    assert width(one) == 6
    with pytest.raises(ValueError, match="`labels` holds 5000, but the head has 6 outputs"):
        one.observe(torch.zeros(1, 6), [5000])
    assert width(one) == 6


def test_names_without_a_map_are_refused_with_what_to_pass() -> None:
    model = mlp(6, 2)
    with pytest.raises(TypeError, match=r"label_map=LabelMap\(\)"):
        Learner(model, sgd(model)).observe(torch.zeros(2, 6), ["cat", "dog"])
