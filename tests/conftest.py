"""One thread, deterministic kernels, no network: the same conditions for every test."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from hypothesis import settings
from jaxtyping import install_import_hook

# Shapes in annotations are checked at run time, in tests only, where the shapes are: before
# recollect is imported. Elsewhere tests pass wrong types on purpose, to see our own messages.
install_import_hook("recollect.gradients", "beartype.beartype")

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)

settings.register_profile("recollect", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("recollect")


@pytest.fixture
def rng() -> torch.Generator:
    return torch.Generator().manual_seed(0)
