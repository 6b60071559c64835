from collections.abc import Callable

import pytest
import torch
from torch import nn

from recollect.models import GrowingHead, mlp, with_growing_head

OPTIMIZERS: dict[str, Callable[[nn.Module], torch.optim.Optimizer]] = {
    "sgd": lambda m: torch.optim.SGD(m.parameters(), lr=0.1),
    "momentum": lambda m: torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9),
    "adam": lambda m: torch.optim.Adam(m.parameters(), lr=0.1, amsgrad=True),
    "adagrad": lambda m: torch.optim.Adagrad(m.parameters(), lr=0.1),
}


def train(model: nn.Module, optimizer: torch.optim.Optimizer, *, seed: int, classes: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    for _ in range(3):
        inputs, labels = (
            torch.randn(6, 4, generator=rng),
            torch.randint(classes, (6,), generator=rng),
        )
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def test_old_classes_get_the_same_logits_and_new_ones_start_at_zero() -> None:
    head = GrowingHead(4, 3)
    inputs = torch.randn(5, 4)
    before = head(inputs)
    head.grow(6)
    after = head(inputs)
    torch.testing.assert_close(after[:, :3], before)
    assert torch.equal(after[:, 3:], torch.zeros(5, 3))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_optimizer_keeps_what_it_knows_of_old_rows_and_trains_the_new_ones(name: str) -> None:
    head = GrowingHead(4, 2)
    optimizer = OPTIMIZERS[name](head)
    train(head, optimizer, seed=0, classes=2)
    weight, state = head.weight, {k: dict(v) for k, v in optimizer.state.items()}
    head.grow(3, optimizer)
    assert head.weight is weight
    for parameter, kept in state.items():
        for key, value in kept.items():
            now = optimizer.state[parameter][key]
            if isinstance(value, torch.Tensor) and value.ndim:
                assert now.shape == parameter.shape
                assert torch.equal(now[:2], value)
                assert not now[2:].any()
            else:
                assert now == value
    train(head, optimizer, seed=1, classes=3)
    assert head.weight[2].any()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_growing_can_be_undone_to_the_bit(name: str) -> None:
    head = GrowingHead(4, 2)
    optimizer = OPTIMIZERS[name](head)
    train(head, optimizer, seed=0, classes=2)
    before = {k: v.clone() for k, v in head.state_dict().items()}
    widen, put_back = head.prepared_growth(4, optimizer)
    widen()
    assert head.out_features == 4
    put_back()
    assert head.out_features == 2
    assert all(torch.equal(v, before[k]) for k, v in head.state_dict().items())
    train(head, optimizer, seed=1, classes=2)
    other = GrowingHead(4, 2)
    other.load_state_dict(before)
    if name == "sgd":
        train(other, OPTIMIZERS[name](other), seed=1, classes=2)
        assert torch.equal(other.weight, head.weight)


def test_a_head_may_grow_while_an_older_graph_is_alive() -> None:
    head = GrowingHead(4, 2)
    alive = head(torch.ones(1, 4)).sum()
    for width in (5, 7):
        head.grow(width)
        found = torch.autograd.grad(head(torch.ones(1, 4)).sum(), [*head.parameters()])
        assert [len(gradient) for gradient in found] == [width, width]
    assert alive.requires_grad


def test_the_helper_keeps_the_optimizers_parameters_and_the_answers() -> None:
    model = mlp(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = torch.randn(3, 4)
    before = model(inputs)
    assert with_growing_head(model) is model
    assert isinstance(model[-1], GrowingHead)
    assert torch.equal(model(inputs), before)
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    assert {id(p) for p in model.parameters()} == held


def test_a_layer_may_be_named_and_one_without_bias_or_alone_works() -> None:
    model = nn.ModuleDict({"head": nn.Linear(4, 2, bias=False), "other": nn.Linear(2, 2)})
    with_growing_head(model, at="head")
    assert isinstance(model["head"], GrowingHead)
    assert model["head"].bias is None
    model["head"].grow(5)
    assert model["head"](torch.ones(1, 4)).shape == (1, 5)
    assert isinstance(with_growing_head(nn.Linear(2, 2)), GrowingHead)


def test_shrinking_wrong_paths_and_models_without_a_linear_layer_are_refused() -> None:
    with pytest.raises(ValueError, match="`num_classes` is 1, but the layer has 2 outputs"):
        GrowingHead(4, 2).grow(1)
    with pytest.raises(ValueError, match=r"`at` is 'x', which is no linear layer .* '1', '3', '5'"):
        with_growing_head(mlp(4, 2), at="x")
    with pytest.raises(ValueError, match="no linear layer"):
        with_growing_head(nn.Conv2d(1, 1, 1))
