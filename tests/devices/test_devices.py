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
from recollect.storage import GSSGreedy

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
    "convolutions": lambda: nn.Sequential(
        *(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12, CLASSES))
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


def mirrored(images: Tensor) -> Tensor:
    """Change examples without drawing: devices draw other numbers from the same seed."""
    return images.flip(-1)


def learner(name: str, kind: str, device: torch.device, memory_device: torch.device) -> Learner:
    model = seeded(MODELS[kind], 0).to(device)
    options: dict[str, Any] = {"memory_device": memory_device, **OPTIONS.get(name, {})}
    if "augment" in options:
        options["augment"] = mirrored
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
# Of BatchNorm, the lazy backend hides what its node keeps, which measuring a gradient reads.
PLAIN = [
    name
    for name, row in METHODS.items()
    if str(row.rule.needs) == "nothing" and row.storage is not GSSGreedy
]
CASES += [("batch norm", name, beside) for beside in (True, False) for name in PLAIN]
CASES += [("convolutions", name, True) for name in METHODS if name not in PLAIN]
# A transformer takes it half a minute to measure, because it compiles every new graph.
CASES += [("transformer", name, True) for name in (*PLAIN, "er-p")]


@pytest.mark.parametrize(
    ("kind", "name", "beside_the_model"), CASES, ids=[f"{k}-{n}-{b}" for k, n, b in CASES]
)
def test_every_method_learns_there_what_it_learns_on_the_cpu(
    kind: str, name: str, beside_the_model: bool, device: torch.device
) -> None:
    there = learner(name, kind, device, device if beside_the_model else CPU)
    stream = batches(steps=STEPS if kind == "mlp" else 2)  # every new graph is compiled
    assert_alike(run(there, stream), run(learner(name, kind, CPU, CPU), stream))
    if there.memory is not None and beside_the_model:
        assert there.memory.labels.device.type == device.type


# One of each kind of storage, retrieval, rule, objective and predictor.
KINDS = ["er", "er-pc-mir", "gss", "er-cb", "er-ace", "der++", "rar", "scr", "er-ema", "er-cagrad"]


@pytest.mark.parametrize("name", KINDS)
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


# What a step of five newcomers and four replays moves once it runs. From a memory on the CPU, one
# batch of inputs and one of labels arrive. To a memory beside the model, the newcomers, those of
# them that are stored, and slots. Numbers are read where a check must know them: whether losses,
# gradients and moved weights are finite, and the rule's weights.
MOST = {
    ("er", "CPU"): (2, 0, 3),
    ("er-p", "CPU"): (2, 0, 4),
    ("er", "beside the model"): (9, 0, 4),
    ("er-p", "beside the model"): (9, 0, 5),
}


@pytest.mark.parametrize(("name", "place"), MOST)
def test_a_step_moves_no_more_between_devices_than_it_must(
    name: str, place: str, device: torch.device
) -> None:
    one = learner(name, "mlp", device, CPU if place == "CPU" else device)
    stream = batches()
    for batch in stream[:-1]:
        one.observe(*batch)
    counts = transfers_of(lambda: one.observe(*stream[-1]))
    found = counts["arrive"], counts["leave"], counts["numbers read"]
    most = MOST[name, place]
    assert all(number <= most for number, most in zip(found, most, strict=True)), found
