"""The engine against the one-by-one oracle, in float64, on every layer it supports."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from recollect.gradients import (
    GradientEngine,
    Groups,
    Measurement,
    Objective,
    gram_of,
    one_by_one,
)
from recollect.models import reduced_resnet18

EXAMPLES = 6


class Residual(nn.Module):
    """The same linear layer twice, around a skip."""

    def __init__(self) -> None:
        super().__init__()
        self.twice = nn.Linear(5, 5)
        self.head = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x + torch.tanh(self.twice(torch.tanh(self.twice(x)))))


class Tied(nn.Module):
    """A table that is also the output layer, used outside its own forward."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 4)
        self.mix = nn.Linear(4, 4)

    def forward(self, tokens: Tensor) -> Tensor:
        return F.linear(torch.tanh(self.mix(self.table(tokens).mean(1))), self.table.weight)


class Scaled(nn.Module):
    """A parameter of the model's own, as a class token or a temperature would be."""

    def __init__(self) -> None:
        super().__init__()
        self.offset = nn.Parameter(torch.randn(5))
        self.body = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.body(torch.tanh(x * self.offset))


class Folded(nn.Module):
    """Positions folded into the batch before the layers, as many vision and text models do."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(5)
        self.conv = nn.Conv1d(1, 2, 3)
        self.body = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        folded = self.norm(x.flatten(0, 1))
        hidden = torch.tanh(self.conv(folded.unsqueeze(1))).flatten(1)
        return self.body(hidden).reshape(x.shape[0], x.shape[1], -1).mean(1)


class SequenceFirst(nn.Module):
    """Time in the first dimension; with as many steps as examples only the check can tell."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(5, 4)
        self.norm = nn.LayerNorm(4)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.norm(self.body(x.transpose(0, 1)))).mean(0))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTM(5, 4, batch_first=True)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.cell(x)
        return self.head(states[:, -1])


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 8, padding_idx=0)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.encoder(self.table(tokens)).mean(1))


class Positions(nn.Module):
    """A table of positions, looked up once for all examples, inside a module of its own."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.table = nn.Embedding(length, 4)

    def forward(self, length: int) -> Tensor:
        return self.table(torch.arange(length))


class Positional(nn.Module):
    def __init__(self, length: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(7, 4), Positions(length)
        self.drop, self.head = nn.Dropout(dropout), nn.Linear(4, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.words(tokens) + self.positions(tokens.shape[1])
        return self.head(self.drop(torch.tanh(hidden).mean(1)))


class TwoBlocks(nn.Module):
    """Positions that two blocks share: the same module, or two modules with one table."""

    def __init__(self, *, same_module: bool) -> None:
        super().__init__()
        first, second = Positions(5), Positions(5)
        second.table.weight = first.table.weight
        shared = first if same_module else second
        self.first = nn.ModuleDict({"positions": first, "body": nn.Linear(4, 4)})
        self.second = nn.ModuleDict({"positions": shared, "body": nn.Linear(4, 3)})

    def forward(self, x: Tensor) -> Tensor:
        for block in (self.first, self.second):
            x = block["body"](torch.tanh(x + block["positions"](5)))
        return x.mean(1)


class Queried(nn.Module):
    """A layer that is given a parameter, and the examples as well."""

    def __init__(self, num_queries: int) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(num_queries, 5))
        self.project = nn.Linear(5, 5)
        self.head = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        keys = self.project(x)
        attention = torch.softmax(keys @ self.project(self.queries).T, 1)  # over x
        return self.head((attention.transpose(1, 2) @ keys).mean(1))


def flat(*layers: nn.Module, width: int) -> nn.Module:
    return nn.Sequential(*layers, nn.Flatten(), nn.Tanh(), nn.Linear(width, 3))


def frozen_first() -> nn.Module:
    model = nn.Sequential(nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 3))
    model[0].weight.requires_grad_(False)
    model[2].bias.requires_grad_(False)
    return model


def with_unused() -> nn.Module:
    model = Scaled()
    model.never_called = nn.Linear(2, 2)
    return model


images = (3, 9, 9)
MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...] | int]] = {
    "linear": (lambda: nn.Linear(5, 3), (5,)),
    "linear without bias": (lambda: nn.Linear(5, 3, bias=False), (5,)),
    "linear over positions": (lambda: flat(nn.Linear(5, 4), width=12), (3, 5)),
    "linear over two leading dimensions": (lambda: flat(nn.Linear(5, 4), width=24), (2, 3, 5)),
    "linear over many positions": (lambda: flat(nn.Linear(2, 2), width=160), (80, 2)),
    "conv1d": (lambda: flat(nn.Conv1d(3, 4, 3, stride=2, padding=1), width=20), (3, 9)),
    "conv2d": (lambda: flat(nn.Conv2d(3, 4, 3), width=196), images),
    "conv2d strided, dilated": (
        lambda: flat(nn.Conv2d(3, 4, 3, stride=2, padding=2, dilation=2), width=100),
        images,
    ),
    "conv2d grouped, no bias": (
        lambda: flat(nn.Conv2d(3, 6, (3, 2), groups=3, bias=False), width=336),
        images,
    ),
    "conv2d, stride leaves a rest": (lambda: flat(nn.Conv2d(3, 4, 2, stride=3), width=36), images),
    "conv2d, same padding": (lambda: flat(nn.Conv2d(3, 4, 3, padding="same"), width=324), images),
    "conv2d, circular": (
        lambda: flat(nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"), width=324),
        images,
    ),
    "conv2d to one position": (lambda: flat(nn.Conv2d(3, 4, 9), width=4), images),
    "conv3d": (lambda: flat(nn.Conv3d(2, 3, 2, padding=1), width=375), (2, 4, 4, 4)),
    "transposed convolution": (lambda: flat(nn.ConvTranspose2d(3, 2, 2), width=200), images),
    "embedding": (lambda: flat(nn.Embedding(7, 4), width=20), 5),
    "embedding with padding": (lambda: flat(nn.Embedding(7, 4, padding_idx=2), width=20), 5),
    "layer norm": (lambda: flat(nn.LayerNorm((4, 5)), width=60), (3, 4, 5)),
    "group norm": (lambda: flat(nn.GroupNorm(2, 4), width=36), (4, 9)),
    "instance norm": (lambda: flat(nn.InstanceNorm2d(3, affine=True), width=243), images),
    "prelu": (lambda: nn.Sequential(nn.Linear(5, 4), nn.PReLU(4), nn.Linear(4, 3)), (5,)),
    "in-place activation": (
        lambda: nn.Sequential(nn.Linear(5, 4), nn.ReLU(inplace=True), nn.Linear(4, 3)),
        (5,),
    ),
    "a layer used twice": (Residual, (5,)),
    "tied weights": (Tied, 5),
    "frozen parameters": (frozen_first, (5,)),
    "parameters without gradient": (with_unused, (5,)),
    "a parameter of the model": (Scaled, (5,)),
    "positions folded into the batch": (Folded, (4, 5)),
    "sequence first": (SequenceFirst, (EXAMPLES, 5)),
    "positions looked up once for all": (lambda: Positional(5), 5),
    "as many positions as examples": (lambda: Positional(EXAMPLES), EXAMPLES),
    "twice as many positions": (lambda: Positional(2 * EXAMPLES), 2 * EXAMPLES),
    "positions that two blocks share": (lambda: TwoBlocks(same_module=True), (5, 4)),
    "positions in two tied tables": (lambda: TwoBlocks(same_module=False), (5, 4)),
    "a layer given a parameter": (lambda: Queried(4), (3, 5)),
    "a layer given as many rows as examples": (lambda: Queried(EXAMPLES), (3, 5)),
    "lstm": (Recurrent, (4, 5)),
    "transformer encoder": (Transformer, 5),
    "reduced resnet18, group norm": (
        lambda: reduced_resnet18(norm="group", width=5, image_size=32),
        (3, 32, 32),
    ),
}


def build(name: str) -> tuple[nn.Module, Tensor, Tensor]:
    torch.manual_seed(0)
    make, shape = MODELS[name]
    model = make().double()
    if isinstance(shape, int):
        inputs = torch.randint(7, (EXAMPLES, shape))
    else:
        inputs = torch.randn(EXAMPLES, *shape, dtype=torch.float64)
    return model, inputs, torch.randint(3, (EXAMPLES,))


def measure(
    model: nn.Module, inputs: Tensor, labels: Tensor, sizes: tuple[int, ...], **options: Any
) -> tuple[Measurement, dict[str, Tensor]]:
    """Measure twice, so that the second pass runs from the plan the first one made."""
    trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
    engine = GradientEngine(model, trainable, **options)
    for _ in range(2):
        losses = F.cross_entropy(model(inputs), labels, reduction="none")
        ones = torch.ones_like(losses)
        scales = torch.ones(len(sizes), dtype=losses.dtype)
        rows = one_by_one(losses, trainable)
        measured = engine.measure(Objective(losses, ones, Groups(sizes), scales))
    return measured, rows


@pytest.mark.parametrize("limit_bytes", [64 * 2**20, 256])
@pytest.mark.parametrize("sizes", [(1,) * 6, (3, 1, 1, 1), (2, 2, 2)])
@pytest.mark.parametrize("name", MODELS)
def test_inner_products_and_weighted_sums_equal_the_oracle(
    name: str, sizes: tuple[int, ...], limit_bytes: int
) -> None:
    model, inputs, labels = build(name)
    measured, rows = measure(model, inputs, labels, sizes, limit_bytes=limit_bytes)
    grouped = {key: Groups(sizes).sum(found) for key, found in rows.items()}

    torch.testing.assert_close(
        measured.gram(), gram_of(list(grouped.values())), rtol=1e-9, atol=1e-12
    )
    gram = gram_of(list(grouped.values()))
    row = torch.stack((gram[0], gram.diagonal()))
    torch.testing.assert_close(measured.row(), row, rtol=1e-9, atol=1e-12)
    weights = torch.linspace(-1, 2, len(sizes), dtype=torch.float64)
    combined = measured.combine(weights)
    for key, found in grouped.items():
        expected = (weights @ found.flatten(1)).reshape(found.shape[1:])
        got = combined.get(key, torch.zeros_like(expected))
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-12, msg=key)


@pytest.mark.parametrize("name", MODELS)
def test_gradients_of_two_passes_join_into_one_measurement(name: str) -> None:
    model, inputs, labels = build(name)
    first, rows = measure(model, inputs[:2], labels[:2], (2,))
    second, later = measure(model, inputs[2:], labels[2:], (1,) * 4)
    joined = first.join(second)
    flat_rows = [torch.cat((rows[key].sum(0, keepdim=True), later[key])) for key in rows]
    gram = gram_of(flat_rows)
    torch.testing.assert_close(joined.gram(), gram, rtol=1e-9, atol=1e-12)
    row = torch.stack((gram[0], gram.diagonal()))
    torch.testing.assert_close(joined.row(), row, rtol=1e-9, atol=1e-12)
    weights = torch.linspace(-1, 2, 5, dtype=torch.float64)
    combined = joined.combine(weights)
    for key, found in zip(rows, flat_rows, strict=True):
        expected = (weights @ found.flatten(1)).reshape(found.shape[1:])
        got = combined.get(key, torch.zeros_like(expected))
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-12, msg=key)


@pytest.mark.parametrize("width", [5, 20])
def test_with_batch_norm_contributions_add_up_to_the_batch_gradient(width: int) -> None:
    torch.manual_seed(0)
    model = reduced_resnet18(width=width).double()
    inputs = torch.randn(EXAMPLES, 3, 32, 32, dtype=torch.float64)
    labels = torch.randint(10, (EXAMPLES,))
    trainable = dict(model.named_parameters())
    engine = GradientEngine(model, trainable)
    losses = F.cross_entropy(model(inputs), labels, reduction="none")
    expected = torch.autograd.grad(losses.sum(), list(trainable.values()), retain_graph=True)
    ones = torch.ones(EXAMPLES, dtype=torch.float64)
    measured = engine.measure(Objective(losses, ones, Groups((1,) * EXAMPLES), ones))
    combined = measured.combine(ones)
    for name, gradient in zip(trainable, expected, strict=True):
        torch.testing.assert_close(combined[name], gradient, rtol=1e-9, atol=1e-12, msg=name)
    # The sum of all inner products is the squared length of the batch gradient.
    total = sum(gradient.square().sum() for gradient in expected)
    torch.testing.assert_close(measured.gram().sum(), total, rtol=1e-9, atol=0)


def test_batch_norm_in_eval_mode_has_true_per_example_gradients() -> None:
    torch.manual_seed(0)
    model = flat(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), width=196).double().eval()
    inputs = torch.randn(EXAMPLES, *images, dtype=torch.float64)
    measured, rows = measure(model, inputs, torch.randint(3, (EXAMPLES,)), (1,) * EXAMPLES)
    torch.testing.assert_close(measured.gram(), gram_of(list(rows.values())), rtol=1e-9, atol=0)


class Centred(nn.Module):
    """Mixes examples without any layer that says so."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.body(x)
        return hidden - hidden.mean(0)


class OwnBatchNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(5))

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * (x - x.mean(0))


class Averaged(nn.Module):
    """Gives a layer the mean example alone, which has no dimension that counts examples."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return x[:, :3] * self.body(x.mean(0))


@pytest.mark.parametrize(
    "model",
    [
        Centred(),
        nn.Sequential(Centred(), nn.Linear(3, 3)),
        nn.Sequential(nn.Linear(5, 5), OwnBatchNorm(), nn.Linear(5, 3)),
        nn.Sequential(nn.Linear(5, 5), Averaged(), nn.Linear(3, 3)),
    ],
)
def test_where_a_model_mixes_examples_each_loss_has_its_own_gradient(model: nn.Module) -> None:
    torch.manual_seed(0)
    inputs, labels = random_batch()
    model = model.double()
    engine = GradientEngine(model, dict(model.named_parameters()))
    for _ in range(2):
        assert_equals_the_oracle(engine, inputs, labels)


def test_a_loss_that_mixes_examples_has_a_gradient_per_example() -> None:
    torch.manual_seed(0)
    model = Positional(5).double()
    parameters = dict(model.named_parameters())
    engine = GradientEngine(model, parameters)
    outputs = model(torch.randint(7, (EXAMPLES, 5)))
    losses = (outputs - outputs.mean(0)).square().sum(1)
    rows = one_by_one(losses, parameters)
    ones = torch.ones_like(losses)
    measured = engine.measure(Objective(losses, ones, Groups((1,) * EXAMPLES), ones))
    torch.testing.assert_close(measured.gram(), gram_of(list(rows.values())), rtol=1e-9, atol=0)


def random_batch() -> tuple[Tensor, Tensor]:
    return torch.randn(EXAMPLES, 5, dtype=torch.float64), torch.randint(3, (EXAMPLES,))


@pytest.mark.parametrize("name", MODELS)
def test_measuring_leaves_the_models_own_parameters_and_buffers_in_it(name: str) -> None:
    model, inputs, labels = build(name)
    before = list(model.state_dict(keep_vars=True).items())
    measure(model, inputs, labels, (1,) * EXAMPLES)
    after = list(model.state_dict(keep_vars=True).items())
    assert [(key, id(held)) for key, held in after] == [(key, id(held)) for key, held in before]


class Cut(nn.Module):
    """Two convolutions; the graph may be cut between them after the plan was made."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(2, 3, 3), nn.GroupNorm(1, 3)
        self.second, self.head = nn.Conv2d(3, 4, 3), nn.Linear(4, 3)
        self.cut = False

    def forward(self, x: Tensor) -> Tensor:
        maps = torch.tanh(self.norm(self.first(x)))
        maps = self.second(maps.detach() if self.cut else maps)
        return self.head(maps.mean((2, 3)))


def test_a_graph_that_changes_after_the_plan_is_followed() -> None:
    torch.manual_seed(0)
    model = Cut().double()
    parameters = dict(model.named_parameters())
    engine = GradientEngine(model, parameters)
    inputs, labels = torch.randn(4, 2, 7, 7, dtype=torch.float64), torch.randint(3, (4,))
    for cut in (False, False, True, False):
        model.cut = cut
        losses = F.cross_entropy(model(inputs), labels, reduction="none")
        ones = torch.ones_like(losses)
        found = engine.measure(Objective(losses, ones, Groups((1,) * 4), ones)).combine(ones)
        losses = F.cross_entropy(model(inputs), labels)
        expected = torch.autograd.grad(4 * losses, list(parameters.values()), allow_unused=True)
        for name, gradient in zip(parameters, expected, strict=True):
            assert (name in found) == (gradient is not None)
            if gradient is not None:
                torch.testing.assert_close(found[name], gradient, rtol=1e-9, atol=1e-12)


class Routed(nn.Module):
    """Sends every batch the way that it is told."""

    def __init__(self, route: str) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(5, 5), nn.Linear(5, 5)
        self.head = nn.Linear(5, 3)
        self.route = route

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.route:
            x = torch.tanh(self.get_submodule(layer)(x))
        return self.head(x)


class HalfCut(nn.Module):
    """Two layers with one weight; the graph may be cut behind the second."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(5, 5, bias=False), nn.Linear(5, 5, bias=False)
        self.head = nn.Linear(5, 3)
        self.b.weight = self.a.weight
        self.cut = True

    def forward(self, x: Tensor) -> Tensor:
        second = torch.tanh(self.b(x))
        return self.head(torch.tanh(self.a(x)) * (second.detach() if self.cut else second))


def assert_equals_the_oracle(engine: GradientEngine, inputs: Tensor, labels: Tensor) -> None:
    """Check inner products, found with shares kept and with shares let go, and a weighted sum."""

    losses = F.cross_entropy(engine.model(inputs), labels, reduction="none")
    rows = one_by_one(losses, engine.parameters)
    gram = gram_of(list(rows.values()))
    ones, groups = torch.ones_like(losses), Groups((1,) * len(labels))
    measured = engine.measure(Objective(losses, ones, groups, ones))
    torch.testing.assert_close(measured.gram(), gram, rtol=1e-9, atol=1e-12)
    weights = torch.linspace(-1, 2, len(labels), dtype=losses.dtype)
    combined = measured.combine(weights)
    for name, found in rows.items():
        expected = torch.tensordot(weights, found, 1)
        got = combined.get(name, torch.zeros_like(expected))
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-12, msg=name)

    losses = F.cross_entropy(engine.model(inputs), labels, reduction="none")
    objective = Objective(losses, ones, groups, ones)
    let_go = engine.measure_losses(objective, to_be_joined=False)
    torch.testing.assert_close(let_go.gram(), gram, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("routes", [("ab", "aa", "ab"), ("aa", "ab"), ("a", "bb", "ab")])
def test_a_layer_used_twice_while_another_rests_adds_up_both_uses(routes: tuple[str, ...]) -> None:
    torch.manual_seed(0)
    model = Routed(routes[0]).double()
    engine = GradientEngine(model, dict(model.named_parameters()))
    for model.route in routes:
        assert_equals_the_oracle(engine, *random_batch())


def test_a_shared_weight_that_the_plan_saw_in_one_layer_alone_adds_up_both_uses() -> None:
    torch.manual_seed(0)
    model = HalfCut().double()
    engine = GradientEngine(model, dict(model.named_parameters()))
    for model.cut in (True, False):
        assert_equals_the_oracle(engine, *random_batch())


class TiedOutside(nn.Module):
    """A weight that is used in its layer and outside of it."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(5, 4), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.linear(torch.tanh(self.body(x)), self.body.weight.T))


def test_a_plan_made_while_gradients_are_zero_is_made_again() -> None:
    torch.manual_seed(0)
    model = TiedOutside().double()
    engine = GradientEngine(model, dict(model.named_parameters()))
    nn.init.zeros_(model.head.weight)  # and so is every gradient in front of it
    assert_equals_the_oracle(engine, *random_batch())
    nn.init.normal_(model.head.weight)
    assert_equals_the_oracle(engine, *random_batch())


def test_what_a_layer_was_given_is_let_go_while_the_pass_goes_back() -> None:
    """Early maps must not wait for the end: only the small gradients made of them may."""
    torch.manual_seed(0)
    convolutions = [nn.Conv2d(2 if i == 0 else 4, 4, 3, padding=1) for i in range(4)]
    model = nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(4 * 16 * 16, 3))
    engine = GradientEngine(model, dict(model.named_parameters()))
    inputs, labels = torch.randn(4, 2, 16, 16), torch.randint(3, (4,))
    for _ in range(2):
        maps: list[weakref.ref[Tensor]] = []
        handles = [
            layer.register_forward_hook(
                lambda *call, kept=maps: kept.append(weakref.ref(call[1][0]))
            )
            for layer in convolutions[1:]
        ]
        losses = F.cross_entropy(model(inputs), labels, reduction="none")
        for handle in handles:
            handle.remove()
        ones = torch.ones_like(losses)
        measured = engine.measure(Objective(losses, ones, Groups((1,) * 4), ones))
        del losses
    assert [ref() is None for ref in maps] == [True] * 3
    assert len(measured) == 4


def test_a_pass_leaves_no_graph_for_the_garbage_collector() -> None:
    """Hooks and nodes that hold each other would keep megabytes until it runs."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Conv2d(3, 3, 3), nn.Flatten(), nn.Linear(48, 3))
    engine = GradientEngine(model, dict(model.named_parameters()))
    inputs, labels = torch.randn(4, 2, 8, 8), torch.randint(3, (4,))

    def measure_once() -> None:
        losses = F.cross_entropy(model(inputs), labels, reduction="none")
        ones = torch.ones_like(losses)
        engine.measure(Objective(losses, ones, Groups((1,) * 4), ones)).gram()

    measure_once()
    gc.collect()
    gc.disable()
    try:
        measure_once()
        left = [type(found).__name__ for found in gc.get_objects()]
    finally:
        gc.enable()
    assert "ConvolutionBackward0" not in left
