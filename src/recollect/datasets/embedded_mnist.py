"""The part of MNIST inside the package: 10,000 test images and as many training images as fit.

MNIST is by Yann LeCun, Corinna Cortes and Christopher J.C. Burges, licence CC BY-SA 3.0.
`scripts/embed_mnist.py` makes the files; `embedded/README.md` says how they are laid out.
"""

import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from recollect.datasets.dataset import DataSet
from recollect.datasets.examples import Examples, LabelledData
from recollect.datasets.files.digests import check_bytes
from recollect.datasets.files.downloads import Progress
from recollect.datasets.mnist import DIGITS
from recollect.datasets.sources.layouts import embedded_folder
from recollect.datasets.sources.listing import LISTING, About

NUM_TEST = 10_000
_SIDE = 28
_LONGEST_RUN = 255

MD5S: Mapping[str, str] = {
    "mnist-labels.xz": "c34f2bfb560d52905f8de045d2f1b1df",
    "mnist-runs.xz": "804259699836945e3bc5bf6cc446053d",
    "mnist-inks.xz": "9a4b993cbea75a92342bd6a0ec98bbac",
}
"""Written by `scripts/embed_mnist.py`: what the package must hold, byte for byte."""

Images = NDArray[np.uint8]


def encode(images: Images, labels: NDArray[np.uint8]) -> dict[str, bytes]:
    """Return the files that `decode` turns back into exactly these images and labels.

    Paper and ink are kept apart: the lengths of alternating runs of zero and non-zero pixels, and
    the values of the non-zero ones. Images of one class lie side by side, where the compressor
    finds them alike; the labels, kept in order, say how to undo that.

    Args:
        images: Of shape (examples, 28, 28).
        labels: One digit per image.
    """
    pixels = images[np.argsort(labels, kind="stable")].reshape(-1)
    return {
        "mnist-labels.xz": _compress(labels.tobytes()),
        "mnist-runs.xz": _compress(_run_lengths(pixels != 0).tobytes()),
        "mnist-inks.xz": _compress(pixels[pixels != 0].tobytes()),
    }


def decode(contents: Mapping[str, bytes]) -> tuple[Images, NDArray[np.uint8]]:
    """Return the images, of shape (examples, 28, 28), and labels that `encode` was given."""
    labels, runs, inks = (
        np.frombuffer(lzma.decompress(contents[name]), dtype=np.uint8) for name in MD5S
    )
    is_ink = np.repeat(np.arange(len(runs)) % 2 == 1, runs)
    pixels = np.zeros(len(labels) * _SIDE * _SIDE, dtype=np.uint8)
    pixels[: len(is_ink)][is_ink] = inks
    images = np.empty((len(labels), _SIDE, _SIDE), dtype=np.uint8)
    images[np.argsort(labels, kind="stable")] = pixels.reshape(images.shape)
    return images, labels.copy()


def _run_lengths(is_ink: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return alternating run lengths, paper first; a long run is broken by runs of length 0."""
    changes = np.flatnonzero(np.diff(is_ink, prepend=False))
    lengths = np.diff(changes, prepend=0)
    num_breaks = (lengths - 1).clip(min=0) // _LONGEST_RUN
    ends = np.cumsum(1 + 2 * num_breaks) - 1
    runs = np.zeros(int(ends[-1]) + 1, dtype=np.uint8)
    runs[ends] = lengths - num_breaks * _LONGEST_RUN
    for index in np.flatnonzero(num_breaks):
        runs[ends[index] - 2 * num_breaks[index] : ends[index] : 2] = _LONGEST_RUN
    return runs


def _compress(content: bytes) -> bytes:
    # Measured on the test images: lc=4 and pb=0 beat the presets by 0.3 %; bz2 and delta lose.
    lzma2 = {
        "id": lzma.FILTER_LZMA2,
        "preset": 9 | lzma.PRESET_EXTREME,
        "lc": 4,
        "pb": 0,
        "nice_len": 273,
        "dict_size": 1 << 24,
    }
    return lzma.compress(content, check=lzma.CHECK_NONE, filters=[lzma2])


_ABOUT = LISTING["mnist-embedded"].about


@dataclass(frozen=True)
class EmbeddedMnist(DataSet):
    """MNIST as far as it fits into the package: needs no network and no disk."""

    about: About = _ABOUT

    def locate(self) -> Path:
        """Return the package's own folder."""
        return embedded_folder()

    def load(self, root: Path | None = None) -> LabelledData:
        """Read the package's files.

        Args:
            root: Another folder with the same files.

        Raises:
            DigestError: The installed package is damaged.
        """
        images, labels = decode(self._checked(root))
        inputs, targets = torch.from_numpy(images), torch.from_numpy(labels).long()
        return LabelledData(
            name=self.about.name,
            train=Examples(inputs[NUM_TEST:], targets[NUM_TEST:]),
            test=Examples(inputs[:NUM_TEST], targets[:NUM_TEST]),
            class_names=DIGITS,
        )

    def fetch(self, root: Path | None, progress: Progress) -> Path:  # noqa: ARG002
        """Return where it lies: it is always here."""
        return self.locate()

    def verify(self, root: Path | None = None) -> list[tuple[str, str]]:
        """Hash the package's files again.

        Raises:
            DigestError: The installed package is damaged.
        """
        self._checked(root)
        return [(name, f"md5 {md5}") for name, md5 in MD5S.items()]

    def _checked(self, root: Path | None) -> dict[str, bytes]:
        folder = root if root is not None else self.locate()
        contents = {name: (folder / name).read_bytes() for name in MD5S}
        for name, md5 in MD5S.items():
            check_bytes(contents[name], expected=md5, origin=str(folder / name))
        return contents


MNIST_EMBEDDED = EmbeddedMnist()
