"""CIFAR-100: the makers' pickles, checked by md5, or their binary files, checked by what they hold.

No registry has it. Bring the folder, or let `fetch` ask the makers' page.
"""

import hashlib
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, final

import numpy as np
import torch

from recollect.datasets.dataset import DataSet
from recollect.datasets.examples import Examples, LabelledData
from recollect.datasets.files.disk import locked, require_space, staged_folder
from recollect.datasets.files.downloads import Progress, RemoteFile, download
from recollect.datasets.files.published_files import Contents, PublishedFiles, Way, fresh_folder
from recollect.datasets.files.restricted_pickle import read_pickle
from recollect.datasets.files.roots import cache_root
from recollect.datasets.files.unpacking import unpack_tar
from recollect.datasets.sources.layouts import (
    CIFAR100_BINARY,
    CIFAR100_PICKLES,
    find_cifar100_binary,
    find_cifar100_pickles,
    find_published,
)
from recollect.datasets.sources.listing import LISTING, About
from recollect.errors import DataError

_PIXELS: Final = 3 * 32 * 32
_ROW: Final = 2 + _PIXELS  # coarse label, fine label, pixels
_EACH: Final = {"train.bin": 500, "test.bin": 100}  # images of each class

_NAMES: Final = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly
camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile
cup dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp
lawn_mower leopard lion lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree
orange orchid otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine possum
rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper snail snake spider
squirrel streetcar sunflower sweet_pepper table tank telephone television tiger tractor train
trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""
NAMES: Final = tuple(_NAMES.split())


def _read_pickles(folder: Path) -> Contents:
    return {name: (folder / name).read_bytes() for name in CIFAR100_PICKLES}


def _decode_pickles(contents: Contents) -> LabelledData:
    with tempfile.TemporaryDirectory() as scratch:
        parts = []
        for name in CIFAR100_PICKLES:
            path = Path(scratch) / name
            path.write_bytes(contents[name])
            parts.append(_examples_of(path))
    return LabelledData("cifar100", *parts, NAMES)


def _examples_of(path: Path) -> Examples:
    batch = read_pickle(path)
    try:
        labels = np.asarray(batch["fine_labels"], dtype=np.int64)
        pixels = np.asarray(batch["data"], dtype=np.uint8).reshape(-1, 3, 32, 32)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"`{path.name}` is a pickle, but none of CIFAR-100 with `fine_labels` and `data` "
            f"({error}). Get the file again."
        ) from error
    return Examples(torch.from_numpy(pixels.copy()), torch.from_numpy(labels))


def _from_page(remote: RemoteFile, scratch: Path, progress: Progress) -> Contents:
    archive = scratch / remote.name
    download(remote, archive, progress=progress)
    unpacked = fresh_folder(scratch)
    unpack_tar(archive, unpacked, wanted=CIFAR100_PICKLES, max_bytes=200_000_000)
    folder = find_cifar100_pickles(unpacked)
    assert folder is not None
    return _read_pickles(folder)


def read_binary(folder: Path) -> LabelledData:
    """Read `train.bin` and `test.bin`, whose md5s the makers have not published.

    Raises:
        DataError: They do not hold 500 and 100 images of each class.
    """
    parts = []
    for name, each in _EACH.items():
        content = (folder / name).read_bytes()
        if len(content) != each * len(NAMES) * _ROW:
            raise _wrong(folder / name, f"it has {len(content):,} bytes", each)
        rows = np.frombuffer(content, dtype=np.uint8).reshape(-1, _ROW)
        counts = np.bincount(rows[:, 1], minlength=len(NAMES))
        if len(counts) != len(NAMES) or (counts != each).any():
            raise _wrong(folder / name, "its classes are not equally many", each)
        images = torch.from_numpy(np.ascontiguousarray(rows[:, 2:]).reshape(-1, 3, 32, 32))
        parts.append(Examples(images, torch.from_numpy(rows[:, 1].astype(np.int64))))
    return LabelledData("cifar100", *parts, NAMES)


def _wrong(path: Path, told: str, each: int) -> DataError:
    return DataError(
        f"`{path}` is no file of CIFAR-100: {told}, where {each} images of each of 100 classes are "
        "expected. Get the file again."
    )


@final
@dataclass(frozen=True)
class Cifar100(DataSet):
    """CIFAR-100 in either of its makers' forms.

    Attributes:
        about: What it is.
        pickles: The form whose md5s are published.
    """

    about: About
    pickles: PublishedFiles

    def locate(self) -> Path | None:
        """Return where our copy lies, or None."""
        return LISTING["cifar100"].locate()

    def load(self, root: Path | None = None) -> LabelledData:
        """Return images and fine labels."""
        folder = self._binary(root)
        return self.pickles.load(root) if folder is None else read_binary(folder)

    def fetch(self, root: Path | None, progress: Progress) -> Path:
        """Make our copy: of `root` in either form, else from the makers' page."""
        folder = None if root is None else self._binary(root)
        if folder is None:
            return self.pickles.fetch(root, progress)
        read_binary(folder)
        cache, target = cache_root(), cache_root() / "cifar100"
        with locked(cache / ".cifar100.lock"):
            require_space(cache, self.pickles.about.num_bytes)
            with staged_folder(target) as staging:
                for name in CIFAR100_BINARY:
                    (staging / name).write_bytes((folder / name).read_bytes())
        return target

    def verify(self, root: Path | None = None) -> list[tuple[str, str]]:
        """Hash every byte again; of the binary form, count the images of each class as well."""
        folder = self._binary(root)
        if folder is None:
            return self.pickles.verify(root)
        read_binary(folder)
        return [
            (name, f"sha256 {hashlib.sha256((folder / name).read_bytes()).hexdigest()}")
            for name in CIFAR100_BINARY
        ]

    def _binary(self, root: Path | None) -> Path | None:
        """Return the folder of the binary form, if there is no other."""
        if find_published("cifar100", find_cifar100_pickles, root) is not None:
            return None
        return find_published("cifar100", find_cifar100_binary, root)


CIFAR100: Final = Cifar100(
    LISTING["cifar100"].about,
    PublishedFiles(
        about=LISTING["cifar100"].about,
        md5s=dict(
            zip(
                CIFAR100_PICKLES,
                ("16019d7e3df5f24257cddd939b257f8d", "f0ef6b0ae62326f3e7ffdfab6717acfc"),
                strict=True,
            )
        ),
        layouts="a folder `cifar-100-python` or `cifar-100-binary`",
        find_folder=find_cifar100_pickles,
        read_folder=_read_pickles,
        ways=(
            Way(
                "the makers' page",
                partial(
                    _from_page,
                    RemoteFile(
                        "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
                        "eb9058c3a382ffc7106e4002c42a8d85",
                        169_001_437,
                    ),
                ),
            ),
        ),
        decode=_decode_pickles,
    ),
)
