"""Small models, a drifting stream and a fingerprint, shared by the learner's tests."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from recollect import METHODS, Learner, method
from recollect.models import seeded

CLASSES = 4
SHAPE = (1, 4, 4)
CAPACITY = 12
REPLAY = 4

Batch = tuple[Tensor, Tensor]


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 12), nn.Tanh(), nn.Linear(12, CLASSES))


def _batch_norm() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(12, CLASSES)
    )


def _dropout() -> nn.Module:
    hidden = (nn.Linear(16, 12), nn.ReLU(), nn.Dropout(0.5))
    return nn.Sequential(nn.Flatten(), *hidden, nn.Linear(12, CLASSES))


MODELS: Mapping[str, Callable[[], nn.Module]] = {
    "mlp": _mlp,
    "batch norm": _batch_norm,
    "dropout": _dropout,
}


def jitter(inputs: Tensor) -> Tensor:
    """Change examples that train, whatever their shape."""
    return inputs + 0.05 * torch.randn_like(inputs)


# Small enough that every part has something to choose from within a few steps.
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "er-mir": {"candidates": 8},
    "er-p-mir": {"candidates": 8},
    "er-pc-mir": {"candidates": 8},
    "er-w-mir": {"candidates": 8},
    "er-clip-mir": {"candidates": 8},
    "gss": {"batches": 3, "batch_size": 3},
    **{name: {"augment": jitter} for name, row in METHODS.items() if row.augments},
}

WITH_MEMORY = [name for name, row in METHODS.items() if row.storage is not None]


def model(kind: str = "mlp", *, dtype: torch.dtype = torch.float32) -> nn.Module:
    return seeded(MODELS[kind], 0).to(dtype)


def sgd(parts: nn.Module, **options: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parts.parameters(), **({"lr": 0.1} | options))


def learner(
    name: str,
    kind: str = "mlp",
    *,
    optimizer: Callable[[nn.Module], torch.optim.Optimizer] = sgd,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
    **options: Any,
) -> Learner:
    """Build a method around a small model; the same call twice gives equal learners."""
    net = model(kind, dtype=dtype)
    chosen = {"capacity": CAPACITY, "replay": REPLAY, **OPTIONS.get(name, {}), **options}
    return method(name, net, optimizer(net), seed=seed, **chosen)


def stream(
    steps: int, *, seed: int = 0, size: int = 5, dtype: torch.dtype = torch.float32
) -> list[Batch]:
    """Batches of noisy class centres; the classes drift from the first two to the last two."""
    rng = torch.Generator().manual_seed(seed)
    centres = torch.randn(CLASSES, *SHAPE, generator=rng, dtype=torch.float64)
    batches = []
    for step in range(steps):
        first = step * (CLASSES - 1) // steps
        labels = first + torch.randint(2, (size,), generator=rng)
        noise = torch.randn(size, *SHAPE, generator=rng, dtype=torch.float64)
        batches.append(((centres[labels] + 0.5 * noise).to(dtype), labels))
    return batches


def run(learner: Learner, batches: list[Batch]) -> Learner:
    for inputs, labels in batches:
        learner.observe(inputs, labels)
    return learner


def contents(learner: Learner) -> Batch:
    """Return everything the memory holds, slot by slot."""
    memory = learner.memory
    if memory is None or memory.is_empty:
        return torch.empty(0), torch.empty(0, dtype=torch.int64)
    inputs, labels = memory.read(torch.arange(len(memory)))
    assert isinstance(inputs, Tensor)
    return inputs, labels


def fingerprint(learner: Learner) -> dict[str, object]:
    """Everything a learner is, and torch's own generator, bit for bit and comparable by ==."""
    found: dict[str, object] = {"step": learner.step, "seen": learner.seen}
    for name, module in learner.model.named_modules():
        found[f"training {name}"] = module.training
    for name, parameter in learner.model.named_parameters():
        _add(found, f"weight {name}", parameter)
        _add(found, f"gradient {name}", parameter.grad)
    for name, buffer in learner.model.named_buffers():
        _add(found, f"buffer {name}", buffer)
    _add(found, "optimizer", learner.optimizer.state_dict())
    if learner.memory is not None:
        _add(found, "memory", learner.memory.state())
        found["memory bytes"] = learner.memory.nbytes
    if learner.storage is not None:
        _add(found, "storage", learner.storage.state())
    _add(found, "predictor", learner.predictor.state())
    _add(found, "classes seen", learner._classes_seen.numbers)
    for purpose, generator in learner.generators.items():
        _add(found, f"generator {purpose}", generator.get_state())
    _add(found, "torch's generator", torch.get_rng_state())
    return found


def _add(found: dict[str, object], name: str, value: object) -> None:
    if isinstance(value, Tensor):
        flat = value.detach().cpu().contiguous().reshape(-1)
        found[name] = (tuple(value.shape), value.dtype, flat.view(torch.uint8).numpy().tobytes())
    elif isinstance(value, Mapping):
        found[f"{name} keys"] = list(value)
        for key, entry in value.items():
            _add(found, f"{name}.{key}", entry)
    elif isinstance(value, list | tuple):
        found[f"{name} length"] = len(value)
        for index, entry in enumerate(value):
            _add(found, f"{name}.{index}", entry)
    else:
        found[name] = repr(value)


def differences(first: Mapping[str, object], second: Mapping[str, object]) -> list[str]:
    """Name what differs between two fingerprints: short, where an assert on == would not be."""
    names = dict.fromkeys([*first, *second])
    return [name for name in names if first.get(name) != second.get(name)]
