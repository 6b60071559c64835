"""Fifty seeded steps of a method on a small drifting problem, as a trace that JSON can hold."""

from pathlib import Path
from typing import Any

import torch

from recollect import method
from recollect.models import mlp, seeded

STEPS = 50
CLASSES = 6
FEATURES = 8
FOLDER = Path(__file__).parent / "traces"

# What a method needs to have something to choose from with a memory this small.
OPTIONS: dict[str, dict[str, Any]] = {
    "er-mir": {"candidates": 12},
    "er-p": {"step_size": 2.0},
    "er-pc": {"step_size": 2.0},
    "er-p-mir": {"candidates": 12, "step_size": 2.0},
    "er-pc-mir": {"candidates": 12, "step_size": 2.0},
    "er-w-mir": {"candidates": 12},
    "er-clip": {"replay_weight": 3.0},
    "er-clip-mir": {"candidates": 12, "replay_weight": 3.0},
    "gss": {"batches": 4, "batch_size": 4},
}


def trace(name: str) -> dict[str, Any]:
    """Run a method and note every loss, and every slot replayed and written."""
    model = seeded(lambda: mlp(FEATURES, CLASSES, hidden=(16,)), 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
    learner = method(name, model, optimizer, capacity=20, replay=5, seed=2, **OPTIONS.get(name, {}))
    rng = torch.Generator().manual_seed(3)
    centres = torch.randn(CLASSES, FEATURES, generator=rng)
    losses, replayed, written = [], [], []
    for step in range(STEPS):
        first = step * (CLASSES - 1) // STEPS
        labels = first + torch.randint(2, (4,), generator=rng)
        inputs = centres[labels] + 0.7 * torch.randn(4, FEATURES, generator=rng)
        report = learner.observe(inputs, labels)
        losses.append(report.loss)
        # Sorted: where two candidates are all but equal, rounding decides which comes first.
        replayed.append(sorted(report.replayed_slots.tolist()))
        written.append(report.written_slots.tolist())
    held = {} if learner.memory is None else learner.memory.counts_by_class()
    return {
        "method": name,
        "losses": losses,
        "replayed": replayed,
        "written": written,
        "held": [held.get(cls, 0) for cls in range(CLASSES)],
        "weights": [float(parameter.detach().norm()) for parameter in model.parameters()],
    }
