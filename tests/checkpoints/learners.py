"""Learners whose checkpoints are kept, and the stream each of them meets.

    python -m tests.checkpoints.learners FOLDER

wrote the files, with the version that FOLDER names. They are never written again.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from recollect import Learner, method
from recollect.models import mlp, seeded

STEPS, MORE_STEPS = 12, 6


class TwoInputs(nn.Module):
    """A model with two inputs by name."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(5, 8), nn.Embedding(7, 8)
        self.head = nn.Linear(8, 4)

    def forward(self, values: Tensor, token: Tensor) -> Tensor:
        logits: Tensor = self.head(torch.tanh(self.left(values) + self.right(token)))
        return logits


def convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, 4)
    )


def _bytes_to_floats(inputs: Any) -> Tensor:
    return inputs.float() / 255


def bytes_er_pc_mir() -> Learner:
    model = seeded(lambda: mlp(36, 4, hidden=(12,)), 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    options = {"candidates": 8, "step_size": 2.0, "transform": _bytes_to_floats}
    return method("er-pc-mir", model, optimizer, capacity=20, replay=4, seed=2, **options)


def images_gss() -> Learner:
    model = seeded(convolutional, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    return method("gss", model, optimizer, capacity=20, replay=4, seed=2, batches=3, batch_size=3)


def named_inputs_er_cb() -> Learner:
    model = seeded(TwoInputs, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return method("er-cb", model, optimizer, capacity=20, replay=4, seed=2)


def inputs_of(name: str, count: int, rng: torch.Generator) -> Any:
    if name == "bytes-er-pc-mir":
        return torch.randint(256, (count, 36), generator=rng).to(torch.uint8)
    if name == "images-gss":
        return torch.randn(count, 1, 6, 6, generator=rng)
    values = torch.randn(count, 5, generator=rng)
    return {"values": values, "token": torch.randint(7, (count,), generator=rng)}


LEARNERS: dict[str, Callable[[], Learner]] = {
    "bytes-er-pc-mir": bytes_er_pc_mir,
    "images-gss": images_gss,
    "named-inputs-er-cb": named_inputs_er_cb,
}


def observe(learner: Learner, name: str, steps: range) -> dict[str, Any]:
    """Continue the stream of a learner; return what it chose."""
    losses, replayed, written = [], [], []
    for step in steps:
        rng = torch.Generator().manual_seed(100 + step)
        inputs, labels = inputs_of(name, 5, rng), torch.randint(4, (5,), generator=rng)
        report = learner.observe(inputs, labels)
        losses.append(report.loss)
        replayed.append(sorted(report.replayed_slots.tolist()))
        written.append(report.written_slots.tolist())
    assert learner.memory is not None
    held = [learner.memory.arrived_at.tolist(), learner.memory.labels.tolist()]
    return {"losses": losses, "replayed": replayed, "written": written, "held": held}


def main() -> None:
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    for name, build in LEARNERS.items():
        learner = build()
        observe(learner, name, range(STEPS))
        learner.save(folder / f"{name}.ckpt")
        more = observe(learner, name, range(STEPS, STEPS + MORE_STEPS))
        (folder / f"{name}.json").write_text(json.dumps(more) + "\n")


if __name__ == "__main__":
    main()
