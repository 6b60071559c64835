"""Where the files of a data set are: by their names alone, without importing what reads them."""

import os
from collections.abc import Callable, Iterable
from functools import partial
from importlib.resources import files
from pathlib import Path

from recollect.datasets.files.roots import cache_root

MNIST_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
TRAIN_BATCHES = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
TEST_BATCH = "test_batch.bin"
BATCHES = (*TRAIN_BATCHES, TEST_BATCH)
CIFAR100_PICKLES = ("train", "test")
CIFAR100_BINARY = ("train.bin", "test.bin")


def find_published(
    name: str, find_folder: Callable[[Path], Path | None], root: Path | None = None
) -> Path | None:
    """Return the folder that holds a data set in some form, or None.

    Args:
        name: What the data set is called.
        find_folder: Returns the folder under a root that holds it.
        root: Where to look; our own folder if None.
    """
    # Our folder may be one the user already keeps in torchvision's layout (`RECOLLECT_DATA`).
    places = [root] if root is not None else [cache_root() / name, cache_root()]
    return next(filter(None, map(find_folder, places)), None)


def _variants(name: str) -> tuple[str, ...]:
    dotted = name.replace("-idx", ".idx")
    return (name, f"{name}.gz", dotted, f"{dotted}.gz")


def find_mnist_file(folder: Path, name: str) -> Path | None:
    """Return a file of the MNISTs by one of the ways its name is spelt, or None."""
    candidates = (folder / variant for variant in _variants(name))
    return next((path for path in candidates if path.is_file()), None)


def find_mnist(root: Path, *, subfolders: tuple[str, ...]) -> Path | None:
    """Return the folder under a root that holds all four files of an MNIST, or None."""
    for subfolder in (".", *subfolders):
        folder = root / subfolder
        if all(find_mnist_file(folder, name) is not None for name in MNIST_FILES):
            return folder
    return None


FIND_MNIST = partial(find_mnist, subfolders=("mnist", "MNIST/raw", "raw", "MNIST"))
FIND_FASHION_MNIST = partial(find_mnist, subfolders=("fashion-mnist", "FashionMNIST/raw", "raw"))


def find_cifar10(root: Path) -> Path | None:
    """Return the folder under a root that holds the batches of CIFAR-10, or None."""
    for subfolder in (".", "cifar10", "cifar-10-batches-bin", "cifar-10-batches-py"):
        folder = root / subfolder
        if has_all(folder, BATCHES) or has_all(folder, [Path(name).stem for name in BATCHES]):
            return folder
    return None


def find_cifar100_pickles(root: Path) -> Path | None:
    """Return the folder under a root that holds the pickles of CIFAR-100, or None."""
    folders = (root / subfolder for subfolder in (".", "cifar100", "cifar-100-python"))
    return next((folder for folder in folders if has_all(folder, CIFAR100_PICKLES)), None)


def find_cifar100_binary(root: Path) -> Path | None:
    """Return the folder under a root that holds the binary files of CIFAR-100, or None."""
    folders = (root / subfolder for subfolder in (".", "cifar100", "cifar-100-binary"))
    return next((folder for folder in folders if has_all(folder, CIFAR100_BINARY)), None)


def find_cifar100(root: Path) -> Path | None:
    """Return the folder under a root that holds CIFAR-100 in either form, or None."""
    return find_cifar100_pickles(root) or find_cifar100_binary(root)


def has_all(folder: Path, names: Iterable[str]) -> bool:
    """Say whether a folder holds all of these files."""
    return all((folder / name).is_file() for name in names)


def find_decoded(name: str) -> Path | None:
    """Return the newest decoded copy of a data set that is decoded once, or None."""
    copies = [marker.parent for marker in (cache_root() / name).glob("*/about.json")]
    whole = [copy for copy in copies if not copy.name.startswith(".")]
    return max(whole, key=lambda copy: (copy / "about.json").stat().st_mtime, default=None)


def embedded_folder() -> Path:
    """Return the folder of the data inside the package.

    `RECOLLECT_EMBEDDED` if set: the snapshot of the package that a worker imports leaves data out.
    """
    if named := os.environ.get("RECOLLECT_EMBEDDED"):
        return Path(named)
    return Path(str(files("recollect.datasets") / "embedded"))


def embedded_text_folder() -> Path:
    """Return the folder of the text inside the package."""
    return Path(str(files("recollect.datasets") / "embedded_text"))
