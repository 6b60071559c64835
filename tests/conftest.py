"""One thread, deterministic kernels, no network: the same conditions for every test."""

import os
from collections.abc import Generator, Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from hypothesis import settings
from tests import shapes, sockets

# In tests only, and before recollect is imported.
shapes.install()

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)

settings.register_profile("recollect", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("recollect")


@pytest.fixture
def terminal() -> Iterator[Path]:
    """A device of the test's own. /dev/null must not be written to here: a test that fails as root
    would replace it for the whole machine. The folder of these devices takes no other files."""
    reader, writer = os.openpty()
    yield Path(os.ttyname(writer))
    os.close(writer)
    os.close(reader)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    with sockets.opened(when=item.get_closest_marker("network") is not None):
        return (yield)


@pytest.fixture
def rng() -> torch.Generator:
    return torch.Generator().manual_seed(0)
