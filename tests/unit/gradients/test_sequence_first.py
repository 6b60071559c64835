"""Models that put time first: nothing but the gradients tells whose row is whose."""

from collections.abc import Callable
from contextlib import suppress

import pytest
import torch
from tests.unit.gradients.measuring import assert_equals_the_oracle, measured, network
from torch import Tensor, nn
from torch.nn import functional as F

from recollect.errors import UnsupportedModuleError
from recollect.gradients import gram_of

EXAMPLES, FEATURES, WIDTH, CLASSES = 8, 6, 5, 3
DOUBLE = torch.float64


class TimeFirst(nn.Module):
    """A body that is given time first. Of a blank example (all zeros) the body learns nothing."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body, self.head = body, nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        blank = x.flatten(1).any(1).unsqueeze(1)
        return self.head(self.body(x.transpose(0, 1)) * blank)


class Mean(nn.Module):
    """The mean over time of what a layer makes of every step."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.layers(x)).mean(0)


class FirstStep(Mean):
    """What a layer makes of the first step, though it is given all of them."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.layers(x))[0]


class FoldedTime(Mean):
    """Rows folded with time first: the examples of one step stand next to each other."""

    def forward(self, x: Tensor) -> Tensor:
        folded = torch.tanh(self.layers(x.flatten(0, 1)))
        return folded.reshape(*x.shape[:2], -1).mean(0)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTM(FEATURES, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.cell(x)
        return states[-1]


BODIES: dict[str, Callable[[], nn.Module]] = {
    "linear": lambda: Mean(nn.Linear(FEATURES, WIDTH)),
    "linear without bias": lambda: Mean(nn.Linear(FEATURES, WIDTH, bias=False)),
    "two layers and a norm": lambda: Mean(
        nn.Linear(FEATURES, 4), nn.LayerNorm(4), nn.Linear(4, WIDTH)
    ),
    "only the first step": lambda: FirstStep(nn.Linear(FEATURES, WIDTH)),
    "as many features as examples": lambda: Mean(
        nn.Linear(FEATURES, EXAMPLES), nn.PReLU(), nn.Linear(EXAMPLES, WIDTH)
    ),
    "folded": lambda: FoldedTime(nn.Linear(FEATURES, WIDTH)),
    "lstm": Recurrent,
}


def batches(*lengths: int, blank: list[int]) -> list[tuple[Tensor, Tensor]]:
    """Make one batch per length; examples named by `blank` are zero in the first of them."""
    made = []
    for length in lengths:
        inputs = torch.randn(EXAMPLES, length, FEATURES, dtype=DOUBLE)
        made.append((inputs, torch.randint(CLASSES, (EXAMPLES,))))
    made[0][0][blank] = 0
    return made


@pytest.mark.parametrize("incoming", [0, 3])
@pytest.mark.parametrize("blank", [[], [0], [0, 1, 2, 3, 4, 6, 7], [*range(EXAMPLES)]])
@pytest.mark.parametrize("length", [EXAMPLES, 2 * EXAMPLES, EXAMPLES - 1])
@pytest.mark.parametrize("body", BODIES)
def test_gradients_by_example_equal_the_oracle(
    body: str, length: int, blank: list[int], incoming: int
) -> None:
    torch.manual_seed(0)
    owner = network(TimeFirst(BODIES[body]()).to(DOUBLE))
    passes = batches(length, length, EXAMPLES, blank=blank)
    assert_equals_the_oracle(owner, passes, incoming=incoming)


def test_tokens_looked_up_with_time_first_equal_the_oracle() -> None:
    """An example of nothing but padding has no gradient at the table."""

    class Tokens(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(9, WIDTH, padding_idx=0)
            self.head = nn.Linear(WIDTH, CLASSES)

        def forward(self, tokens: Tensor) -> Tensor:
            looked_up = self.table(tokens.T) * (tokens.T != 0).unsqueeze(2)
            return self.head(torch.tanh(looked_up).sum(0))

    torch.manual_seed(0)
    owner = network(Tokens().to(DOUBLE))
    passes = []
    for _ in range(3):
        tokens = torch.randint(1, 9, (EXAMPLES, EXAMPLES))
        tokens[:, 5:] = 0
        passes.append((tokens, torch.randint(CLASSES, (EXAMPLES,))))
    passes[0][0][0] = 0
    assert_equals_the_oracle(owner, passes)


class Routed(nn.Module):
    """Two bodies, of which a pass uses one."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.later = BODIES["linear"](), BODIES["linear"]()
        self.head = nn.Linear(WIDTH, CLASSES)
        self.route = "first"

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.get_submodule(self.route)(x.transpose(0, 1)))


@pytest.mark.parametrize("blank", [[], [0]])
def test_a_layer_first_used_in_a_later_pass_equals_the_oracle(blank: list[int]) -> None:
    torch.manual_seed(0)
    model = Routed().to(DOUBLE)
    owner = network(model)
    for model.route in ("first", "later", "first", "later"):
        assert_equals_the_oracle(owner, batches(EXAMPLES, EXAMPLES, blank=blank))


def test_a_length_of_one_says_nothing_about_longer_ones() -> None:
    """Folded with time first, one step looks as if examples came first."""
    torch.manual_seed(0)
    owner = network(TimeFirst(BODIES["folded"]()).to(DOUBLE))
    assert_equals_the_oracle(owner, batches(1, 1, blank=[]))
    with suppress(UnsupportedModuleError):  # but never silently wrong
        assert_equals_the_oracle(owner, batches(2, blank=[]))


class Normalised(nn.Module):
    """Time first, and examples that BatchNorm mixes behind."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(FEATURES, WIDTH)
        self.norm = nn.BatchNorm1d(WIDTH, affine=False)
        self.head = nn.Linear(WIDTH, CLASSES)
        self.head.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return self.behind(self.body(x.transpose(0, 1)))

    def behind(self, states: Tensor) -> Tensor:
        return self.head(self.norm(torch.tanh(states).mean(0)))

    def contributions(self, x: Tensor, labels: Tensor) -> list[Tensor]:
        """Give every example weights of its own: autograd finds what each of them contributes."""
        each = [
            p.detach().expand(EXAMPLES, *p.shape).clone().requires_grad_()
            for p in (self.body.weight, self.body.bias)
        ]
        states = torch.einsum("ntf,nwf->tnw", x, each[0]) + each[1]
        losses = F.cross_entropy(self.behind(states), labels, reduction="sum")
        return list(torch.autograd.grad(losses, each))


@pytest.mark.parametrize("length", [EXAMPLES - 1, EXAMPLES, 2 * EXAMPLES])
@pytest.mark.parametrize("seed", range(3))
def test_contributions_under_batch_norm_are_those_of_the_right_examples(
    length: int, seed: int
) -> None:
    torch.manual_seed(seed)
    model = Normalised().to(DOUBLE)
    owner = network(model)
    for inputs, labels in batches(length, length, blank=[]):
        gram = gram_of(model.contributions(inputs, labels))
        torch.testing.assert_close(measured(owner, inputs, labels).gram(), gram)


def test_finding_out_draws_nothing_from_the_callers_generator() -> None:
    torch.manual_seed(0)
    owner = network(TimeFirst(BODIES["linear"]()).to(DOUBLE))
    (batch,) = batches(EXAMPLES, blank=[0])
    before = torch.get_rng_state()
    measured(owner, *batch)
    assert torch.equal(torch.get_rng_state(), before)
