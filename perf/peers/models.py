"""Our models for the peers, loaded by path: their environment does not have recollect."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

from torch import nn

_FOLDER = Path(__file__).parents[2] / "src" / "recollect" / "models"
_FILES = {"mlp": "mlp", "cifar": "reduced_resnet18"}
# What `perf.contestants.shapes` says of these two; that file needs recollect.
EXAMPLES = {"mlp": (784,), "cifar": (3, 32, 32)}
CLASSES, BATCH, REPLAY, CAPACITY, LEARNING_RATE = 10, 10, 10, 500, 0.05


def model_for(shape: str) -> nn.Module:
    """Build the same network that ours is timed with."""
    name = _FILES[shape]
    spec = importlib.util.spec_from_file_location(name, _FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    build: Callable[[], nn.Module] = getattr(module, name)
    return build()
