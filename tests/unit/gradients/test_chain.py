"""Passing a row of layers by hand is autograd's own arithmetic, to the bit."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from recollect.models import mlp, seeded
from recollect.network.ways.by_hand import (
    Chain,
    cross_entropy_by_hand,
    cross_entropy_cotangents,
    gradients_of,
)

MODELS: dict[str, Callable[[], nn.Sequential]] = {
    "the usual one": lambda: mlp(12, 3, hidden=(7, 5)),
    "other functions": lambda: nn.Sequential(
        nn.Linear(12, 6), nn.Tanh(), nn.Linear(6, 5, bias=False), nn.Sigmoid(), nn.Linear(5, 3)
    ),
    "functions in a row": lambda: nn.Sequential(
        nn.Identity(), nn.Tanh(), nn.Linear(12, 6), nn.ReLU(), nn.Tanh(), nn.Linear(6, 3), nn.Tanh()
    ),
}


def by_autograd(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    coefficients: Tensor,
    parameters: dict[str, nn.Parameter],
) -> tuple[Tensor, dict[str, Tensor]]:
    losses = F.cross_entropy(model(x), y, reduction="none")
    found = torch.autograd.grad(losses @ coefficients, list(parameters.values()))
    return losses.detach(), dict(zip(parameters, found, strict=True))


@pytest.mark.parametrize("frozen", [(), ("0", "1"), ("2",)])
@pytest.mark.parametrize("name", MODELS)
def test_losses_and_gradients_equal_autograds_to_the_bit(name: str, frozen: tuple[str]) -> None:
    model = seeded(MODELS[name], 0)
    parameters = {
        key: parameter
        for key, parameter in model.named_parameters()
        if not key.startswith(frozen or "none")
    }
    rng = torch.Generator().manual_seed(1)
    x, y = torch.randn(8, 12, generator=rng), torch.randint(3, (8,), generator=rng)
    coefficients = torch.rand(8, generator=rng)
    chain = Chain.of(model, parameters)
    assert chain is not None
    assert chain.takes(x)
    with torch.no_grad():
        passed = chain.forward(x)
        losses, log_probabilities = cross_entropy_by_hand(passed[-1], y)
        at_logits = cross_entropy_cotangents(log_probabilities, y, coefficients)
        layers = chain.backward(passed, at_logits)
    expected_losses, expected = by_autograd(model, x, y, coefficients, parameters)
    assert torch.equal(losses, expected_losses)
    gradients = gradients_of(layers)
    assert gradients.keys() == expected.keys()
    for key, gradient in expected.items():
        assert torch.equal(gradients[key], gradient), key


class Subclass(nn.Sequential):
    """May compute anything."""


class Doubling(nn.Linear):
    """Not a plain linear layer."""

    @override
    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


def tied() -> nn.Sequential:
    layer = nn.Linear(4, 4)
    return nn.Sequential(layer, nn.ReLU(), layer)


def tied_weight() -> nn.Sequential:
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    second.weight = first.weight
    return nn.Sequential(first, second)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Subclass(nn.Linear(4, 3)),
        lambda: nn.Sequential(Doubling(4, 3)),
        lambda: nn.Sequential(nn.Linear(4, 3), nn.Dropout()),
        lambda: nn.Sequential(nn.Linear(4, 4), nn.Flatten()),
        lambda: nn.Sequential(nn.Flatten(0), nn.Linear(4, 3)),
        lambda: nn.Sequential(nn.ReLU()),
        lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))),
        tied,
        tied_weight,
        lambda: nn.Linear(4, 3),
    ],
)
def test_what_is_no_plain_row_of_layers_is_left_to_autograd(build: Callable[[], nn.Module]) -> None:
    model = build()
    assert Chain.of(model, dict(model.named_parameters())) is None


def test_a_pass_that_somebody_watches_is_left_to_autograd() -> None:
    model = mlp(4, 3)
    chain = Chain.of(model, dict(model.named_parameters()))
    assert chain is not None
    x = torch.zeros(2, 4)
    watchers: list[Callable[[], torch.utils.hooks.RemovableHandle]] = [
        lambda: model.register_forward_hook(lambda *_: None),
        lambda: model[1].register_forward_pre_hook(lambda *_: None),
        lambda: model[2].register_full_backward_hook(lambda *_: None),
        lambda: next(model.parameters()).register_hook(lambda g: g),  # type: ignore[no-untyped-call]
        lambda: nn.modules.module.register_module_forward_hook(lambda *_: None),
    ]
    for watch in watchers:
        handle = watch()
        assert not chain.takes(x)
        handle.remove()
        assert chain.takes(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not chain.takes(x)
    assert not chain.takes((x,))
    model[1].forward = lambda inputs: inputs
    assert not chain.takes(x)
