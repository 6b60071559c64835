"""Passes in half precision, everything else as precise as it is without."""

import copy
import warnings
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from recollect import METHODS, Learner, method
from recollect.gradients import GradientEngine, Groups, Objective, gram_of, one_by_one
from recollect.models import mlp, seeded

EXAMPLES, CLASSES = 6, 3
HALF = torch.bfloat16


@pytest.fixture(autouse=True)
def plain_kernels() -> Iterator[None]:
    """Leave oneDNN out: some virtual machines announce matrix tiles (AMX) and then refuse them."""
    with warnings.catch_warnings(action="ignore"), torch.backends.mkldnn.flags(enabled=False):
        yield


class Attention(nn.Module):
    """A layer without a formula of ours in the middle."""

    def __init__(self) -> None:
        super().__init__()
        self.into = nn.Linear(4, 8)
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)
        self.out = nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.into(x.reshape(len(x), -1, 4))
        return self.out(self.norm(x + self.attend(x, x, x)[0]).mean(1))


class WithPositions(nn.Module):
    """A parameter of the model's own, so that the whole model goes without a formula."""

    def __init__(self) -> None:
        super().__init__()
        self.positions = nn.Parameter(0.1 * torch.randn(20))
        self.body = Attention()

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x + self.positions)


class HalfInside(nn.Module):
    """Autocast where most people put it: in the model."""

    def __init__(self, inner: nn.Module, answers_in: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.inner, self.answers_in = inner, answers_in

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=HALF):
            return self.inner(x).to(self.answers_in)


def images(norm: nn.Module) -> nn.Module:
    first = (nn.Unflatten(1, (1, 4, 5)), nn.Conv2d(1, 4, 3, padding=1), norm, nn.ReLU())
    return nn.Sequential(*first, nn.Conv2d(4, 4, 3), nn.Flatten(), nn.Linear(24, CLASSES))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "mlp": lambda: mlp(20, CLASSES, hidden=(16,)),
    "group norm": lambda: images(nn.GroupNorm(2, 4)),
    "batch norm": lambda: images(nn.BatchNorm2d(4)),
    "attention": Attention,
    "positions": WithPositions,
}


def batches(count: int) -> list[tuple[Tensor, Tensor]]:
    rng = torch.Generator().manual_seed(5)
    return [
        (
            torch.randn(EXAMPLES, 20, generator=rng),
            torch.randint(CLASSES, (EXAMPLES,), generator=rng),
        )
        for _ in range(count)
    ]


def distance(found: Tensor, expected: Tensor) -> float:
    return float(((found - expected).norm() / expected.norm()).detach())


@pytest.mark.parametrize("name", [name for name in MODELS if name != "batch norm"])
def test_per_example_gradients_are_autograds_up_to_the_rounding_of_half_precision(
    name: str,
) -> None:
    model = HalfInside(seeded(MODELS[name], 0))
    inputs, labels = batches(1)[0]
    parameters = dict(model.named_parameters())
    engine = GradientEngine(model, parameters)

    def losses() -> Tensor:
        return F.cross_entropy(model(inputs), labels, reduction="none")

    ones = torch.ones(EXAMPLES)
    for _ in range(2):  # the first pass plans
        measured = engine.measure(Objective(losses(), ones, Groups((1,) * EXAMPLES), ones))
    rows = one_by_one(losses(), parameters)
    assert measured.gram().dtype == torch.float32
    assert distance(measured.gram(), gram_of(list(rows.values()))) < 0.01
    weights = torch.linspace(-1, 2, EXAMPLES)
    combined = measured.combine(weights)
    for parameter, gradients in rows.items():
        expected = torch.tensordot(weights, gradients, 1)
        assert combined[parameter].dtype == torch.float32
        assert distance(combined[parameter], expected) < 0.02, parameter


def build(name: str, model: nn.Module, **options: object) -> Learner:
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    if METHODS[name].augments:
        options["augment"] = torch.clone
    return method(name, model, sgd, capacity=8, replay=4, seed=0, **options)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", MODELS)
def test_every_method_learns_under_autocast(kind: str, name: str) -> None:
    learner = build(name, seeded(MODELS[kind], 0))
    before = copy.deepcopy(learner.model.state_dict())
    for inputs, labels in batches(6):
        with torch.autocast("cpu", dtype=HALF):
            update = learner.observe(inputs, labels).updates[-1]
            # Distances to means of stored examples are taken in full precision.
            expected = torch.float32 if learner.predictor.needs_memory else HALF
            assert learner.predict(inputs).dtype == expected
            assert torch.is_autocast_enabled("cpu")
        if update.gram is not None:
            assert update.gram.dtype == torch.float32
    after = learner.model.state_dict()
    assert all(after[key].dtype == before[key].dtype for key in after)
    assert not any(torch.equal(after[key], before[key]) for key in after if "num" not in key)


@pytest.mark.parametrize("answers_in", [HALF, torch.float32])
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", ["batch norm", "positions"])
def test_every_method_learns_with_autocast_inside_the_model(
    kind: str, name: str, answers_in: torch.dtype
) -> None:
    learner = build(name, HalfInside(seeded(MODELS[kind], 0), answers_in))
    for inputs, labels in batches(4):
        update = learner.observe(inputs, labels).updates[-1]
        assert update.losses.dtype == torch.float32


def test_a_loss_in_half_precision_is_added_up_in_full() -> None:
    def loss(logits: Tensor, labels: Tensor) -> Tensor:
        return torch.logsumexp(logits, 1) - logits.gather(1, labels[:, None]).squeeze(1)

    learner = build("er-p", seeded(MODELS["mlp"], 0), loss=loss)
    for inputs, labels in batches(3):
        with torch.autocast("cpu", dtype=HALF):
            update = learner.observe(inputs, labels).updates[-1]
    assert update.losses.dtype == torch.float32


def test_a_transform_is_not_cast_when_learning_or_answering() -> None:
    seen = []

    def transform(inputs: object) -> object:
        seen.append(torch.is_autocast_enabled("cpu"))
        return inputs

    learner = build("er-pc-mir", seeded(MODELS["mlp"], 0), transform=transform)
    with torch.autocast("cpu", dtype=HALF):
        for inputs, labels in batches(3):
            learner.observe(inputs, labels)
        learner.predict(inputs, batch_size=4)
    assert seen
    assert not any(seen)


@pytest.mark.parametrize("name", ["er-p", "er-mir", "er-c", "gss"])
@pytest.mark.parametrize("kind", MODELS)
def test_weights_cast_before_a_step_are_not_used_after_it(kind: str, name: str) -> None:
    # Torch keeps cast weights until the outermost block ends, and would not notice the step.
    one_block, many_blocks = (build(name, seeded(MODELS[kind], 0), iterations=2) for _ in range(2))
    with torch.autocast("cpu", dtype=HALF):
        found = []
        for inputs, labels in batches(5):
            one_block.observe(inputs, labels)
            found.append(one_block.predict(inputs))
    for (inputs, labels), logits in zip(batches(5), found, strict=True):
        with torch.autocast("cpu", dtype=HALF):
            many_blocks.observe(inputs, labels)
        with torch.autocast("cpu", dtype=HALF):
            assert torch.equal(many_blocks.predict(inputs), logits)
    pairs = zip(one_block.model.parameters(), many_blocks.model.parameters(), strict=True)
    assert all(torch.equal(one, many) for one, many in pairs)


@pytest.mark.parametrize("name", ["er", "er-p", "er-pc-mir"])
def test_autocast_is_close_to_full_precision_and_not_the_same(name: str) -> None:
    half, full = (build(name, seeded(MODELS["mlp"], 0)) for _ in range(2))
    for inputs, labels in batches(4):
        with torch.autocast("cpu", dtype=HALF):
            half.observe(inputs, labels)
        full.observe(inputs, labels)
    for one, other in zip(half.model.parameters(), full.model.parameters(), strict=True):
        assert 0 < distance(one, other) < 0.05


def test_an_error_leaves_autocast_and_learner_as_they_were() -> None:
    learner = build("er-p", seeded(MODELS["mlp"], 0))
    inputs, labels = batches(1)[0]
    with torch.autocast("cpu", dtype=HALF):
        with pytest.raises(ValueError, match="labels"):
            learner.observe(inputs, labels + CLASSES)
        assert torch.is_autocast_enabled("cpu")
        learner.observe(inputs, labels)
    learner.observe(inputs, labels)
    assert learner.predict(inputs).dtype == torch.float32
