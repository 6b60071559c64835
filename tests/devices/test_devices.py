"""A model on another device than the stream: same choices, same learning, same files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.devices.lazy import start
from tests.devices.transfers import transfers_of
from tests.unit.learner.support import CLASSES, OPTIONS, SHAPE
from torch import Tensor, nn

from recollect import METHODS, Learner, method
from recollect.models import seeded

STEPS = 4


class Transformer(nn.Module):
    """One encoder layer over the rows of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.block(images.squeeze(1)).flatten(1))
        return logits


MODELS: dict[str, Callable[[], nn.Module]] = {
    "mlp": lambda: nn.Sequential(nn.Flatten(), nn.Linear(16, 12), nn.Tanh(), nn.Linear(12, 4)),
    # Without running statistics, which torch's lazy backend never moves.
    "batch norm": lambda: nn.Sequential(
        *(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3, track_running_stats=False), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(12, CLASSES)),
    ),
    "transformer": Transformer,
}

DEVICES = [
    "lazy",
    pytest.param(
        "cuda",
        marks=[
            pytest.mark.gpu,
            pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here"),
        ],
    ),
]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> torch.device:
    return start() if request.param == "lazy" else torch.device(request.param)


def learner(name: str, kind: str, device: torch.device, memory_device: torch.device) -> Learner:
    model = seeded(MODELS[kind], 0).to(device)
    options: dict[str, Any] = {"memory_device": memory_device, **OPTIONS.get(name, {})}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    return method(name, model, optimizer, capacity=12, replay=4, seed=0, **options)


def batches(first: int = 0, steps: int = STEPS) -> list[tuple[Tensor, Tensor]]:
    """Batches as they arrive: on the CPU."""
    found = []
    for step in range(first, first + steps):
        rng = torch.Generator().manual_seed(step)
        labels = torch.randint(CLASSES, (5,), generator=rng)
        found.append((torch.randn(5, *SHAPE, generator=rng) + labels[:, None, None, None], labels))
    return found


def run(one: Learner, stream: list[tuple[Tensor, Tensor]]) -> dict[str, Any]:
    reports = [one.observe(*batch) for batch in stream]
    return {
        "losses": [report.loss for report in reports],
        "replayed": [sorted(report.replayed_slots.tolist()) for report in reports],
        "written": [report.written_slots.tolist() for report in reports],
        "logits": one.predict(stream[0][0]).cpu().tolist(),
    }


def assert_alike(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found["replayed"] == expected["replayed"]
    assert found["written"] == expected["written"]
    torch.testing.assert_close(
        torch.tensor(found["losses"]), torch.tensor(expected["losses"]), rtol=1e-3, atol=1e-4
    )
    torch.testing.assert_close(
        torch.tensor(found["logits"]), torch.tensor(expected["logits"]), rtol=1e-3, atol=1e-3
    )


CPU = torch.device("cpu")
CASES = [("mlp", name, beside) for beside in (True, False) for name in METHODS]
# Of BatchNorm, the lazy backend hides what its node keeps, which measuring a gradient reads. And a
# transformer takes it half a minute to measure, because it compiles every new graph.
CASES += [("batch norm", name, True) for name in ("van", "er", "er-mir", "er-cb", "er-w")]
CASES += [("transformer", name, True) for name in ("er", "er-mir", "er-p")]


@pytest.mark.parametrize(
    ("kind", "name", "beside_the_model"), CASES, ids=[f"{k}-{n}-{b}" for k, n, b in CASES]
)
def test_every_method_learns_there_what_it_learns_on_the_cpu(
    kind: str, name: str, beside_the_model: bool, device: torch.device
) -> None:
    there = learner(name, kind, device, device if beside_the_model else CPU)
    stream = batches(steps=2 if kind == "transformer" else STEPS)
    assert_alike(run(there, stream), run(learner(name, kind, CPU, CPU), stream))
    if there.memory is not None and beside_the_model:
        assert there.memory.labels.device.type == device.type


@pytest.mark.parametrize("name", ["er", "er-pc-mir", "gss", "er-cb"])
def test_a_checkpoint_is_saved_on_one_device_and_loaded_on_the_other(
    name: str, device: torch.device, tmp_path: Path
) -> None:
    path = tmp_path / "learner.ckpt"
    for saved_on, loaded_on in ((device, CPU), (CPU, device)):
        first = learner(name, "mlp", saved_on, saved_on)
        run(first, batches())
        first.save(path)
        second = learner(name, "mlp", loaded_on, loaded_on)
        second.load(path)
        assert_alike(run(second, batches(STEPS)), run(first, batches(STEPS)))


# What a step of five newcomers and four replays moves once it runs: the batch's inputs and labels
# arrive, those replayed from a memory on the CPU, and slots and coefficients that are not kept.
# A number is read where a check must know it: finite losses and gradients, and the rule's weights.
MOST = {"er": (9, 2, 6), "er-p": (9, 2, 9)}


@pytest.mark.parametrize("name", MOST)
def test_a_step_moves_no_more_between_devices_than_it_must(name: str, device: torch.device) -> None:
    one = learner(name, "mlp", device, device)
    stream = batches()
    for batch in stream[:-1]:
        one.observe(*batch)
    counts = transfers_of(lambda: one.observe(*stream[-1]))
    found = counts["arrive"], counts["leave"], counts["numbers read"]
    assert all(number <= most for number, most in zip(found, MOST[name], strict=True)), found
