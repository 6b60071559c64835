"""Random small architectures: layers, orders of dimensions, ties and frozen parts."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from recollect.gradients import GradientEngine, Groups, Objective, gram_of, one_by_one

WIDTH, LENGTH, CLASSES = 4, 3, 3


class Positions(nn.Module):
    """Adds positions that all examples share."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(LENGTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table(torch.arange(LENGTH))


class Token(nn.Module):
    """Puts a token of its own in the place of the first position."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.token.expand(len(x), 1, WIDTH), x[:, 1:]], 1)


class TimeFirst(nn.Module):
    """Runs a layer with time in the first dimension."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x.transpose(0, 1)).transpose(0, 1)


class Folded(nn.Module):
    """Runs a layer with positions folded into the batch, time first or examples first."""

    def __init__(self, layer: nn.Module, *, time_first: bool) -> None:
        super().__init__()
        self.layer, self.time_first = layer, time_first

    def forward(self, x: Tensor) -> Tensor:
        y = x.transpose(0, 1) if self.time_first else x
        y = self.layer(y.flatten(0, 1)).unflatten(0, y.shape[:2])
        return y.transpose(0, 1) if self.time_first else y


class ChannelsSecond(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x.transpose(1, 2)).transpose(1, 2)


class States(nn.Module):
    def __init__(self, kind: Callable[..., nn.RNNBase]) -> None:
        super().__init__()
        self.cell = kind(WIDTH, WIDTH, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.cell(x)[0]


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 2, dropout=0.1, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x, need_weights=False)[0]


class Residual(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layer(x)


LAYERS: list[Callable[[], nn.Module]] = [
    lambda: nn.Linear(WIDTH, WIDTH),
    lambda: nn.Linear(WIDTH, WIDTH, bias=False),
    lambda: nn.LayerNorm(WIDTH),
    lambda: nn.RMSNorm(WIDTH),
    lambda: nn.Dropout(0.3),
    lambda: ChannelsSecond(nn.GroupNorm(2, WIDTH)),
    lambda: ChannelsSecond(nn.InstanceNorm1d(WIDTH, affine=True)),
    lambda: ChannelsSecond(nn.Conv1d(WIDTH, WIDTH, 3, padding=1)),
    lambda: ChannelsSecond(nn.Conv1d(WIDTH, WIDTH, 3, padding=1, groups=WIDTH, bias=False)),
    lambda: ChannelsSecond(nn.PReLU(WIDTH)),
    lambda: nn.utils.parametrizations.weight_norm(nn.Linear(WIDTH, WIDTH)),
    lambda: States(nn.GRU),
    lambda: States(nn.LSTM),
    Attention,
    Positions,
    Token,
]
WRAPPERS: list[Callable[[nn.Module], nn.Module]] = [
    lambda layer: layer,
    Residual,
    TimeFirst,
    lambda layer: Folded(layer, time_first=True),
    lambda layer: Folded(layer, time_first=False),
]
#: Layers that need a sequence of the given order are not turned round.
TURNED = 4


class Net(nn.Module):
    def __init__(self, layers: list[nn.Module], *, tied: bool) -> None:
        super().__init__()
        self.table, self.layers = nn.Embedding(7, WIDTH), nn.Sequential(*layers)
        self.head = None if tied else nn.Linear(WIDTH, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = torch.tanh(self.layers(self.table(tokens))).mean(1)
        if self.head is None:
            return F.linear(hidden, self.table.weight)[:, :CLASSES]
        return self.head(hidden)


@st.composite
def nets(draw: st.DrawFn) -> nn.Module:
    torch.manual_seed(draw(st.integers(0, 2**16)))
    layers: list[nn.Module] = []
    for _ in range(draw(st.integers(1, 4))):
        which = draw(st.integers(0, len(LAYERS) - 1))
        wrap = WRAPPERS[draw(st.integers(0, len(WRAPPERS) - 1 if which <= TURNED else 1))]
        layers.append(wrap(LAYERS[which]()))
    if draw(st.booleans()):  # once more
        layers.append(layers[0])
    model = Net(layers, tied=draw(st.booleans())).double()
    for parameter in model.parameters():
        if draw(st.integers(0, 4)) == 0:
            parameter.requires_grad_(False)
    model.table.weight.requires_grad_(True)
    return model


@pytest.mark.parametrize("part", range(6))
@settings(max_examples=7)
@given(data=st.data())
def test_gradients_by_example_are_those_of_the_oracle(part: int, data: st.DataObject) -> None:
    model = data.draw(nets())
    count = data.draw(st.sampled_from([1, 2, 3, 4, 7, 12, 33, 70]))
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    engine = GradientEngine(model, parameters)
    tokens, labels = torch.randint(7, (count, LENGTH)), torch.randint(CLASSES, (count,))
    sizes = (1,) * count if count < 5 or data.draw(st.booleans()) else (count - 3, 1, 1, 1)
    for _ in range(2):
        losses = F.cross_entropy(model(tokens), labels, reduction="none")
        groups = Groups(sizes)
        rows = {name: groups.sum(g) for name, g in one_by_one(losses, parameters).items()}
        scales = losses.new_ones(len(groups))
        measured = engine.measure(Objective(losses, torch.ones_like(losses), groups, scales))
        gram = gram_of(list(rows.values()))
        torch.testing.assert_close(measured.gram(), gram, rtol=1e-9, atol=1e-12)
        weights = torch.linspace(-1, 2, len(groups), dtype=losses.dtype)
        combined = measured.combine(weights)
        for name, found in rows.items():
            expected = torch.tensordot(weights, found, 1)
            got = combined.get(name, torch.zeros_like(expected))
            torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-11, msg=name)
    assert not engine.taken_apart
