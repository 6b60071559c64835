"""The data sets known by name."""

from pathlib import Path

from recollect.datasets.cifar10 import CIFAR10
from recollect.datasets.cifar100 import CIFAR100
from recollect.datasets.dataset import DataSet
from recollect.datasets.embedded_mnist import MNIST_EMBEDDED
from recollect.datasets.examples import LabelledData
from recollect.datasets.files.downloads import Progress, no_progress
from recollect.datasets.languages import EMBEDDED_LANGUAGES
from recollect.datasets.mini_imagenet import MINI_IMAGENET
from recollect.datasets.mnist import FASHION_MNIST, MNIST

CATALOGUE: dict[str, DataSet] = {
    "mnist-embedded": MNIST_EMBEDDED,
    "mnist": MNIST,
    "fashion-mnist": FASHION_MNIST,
    "cifar10": CIFAR10,
    "cifar100": CIFAR100,
    "mini-imagenet": MINI_IMAGENET,
    "languages": EMBEDDED_LANGUAGES,
}


def data_set(name: str) -> DataSet:
    """Return the catalogue's entry.

    Raises:
        ValueError: There is none of that name.
    """
    if name not in CATALOGUE:
        raise ValueError(f"`name` is `{name}`; choose one of {', '.join(CATALOGUE)}.")
    return CATALOGUE[name]


def load(name: str, *, root: str | Path | None = None) -> LabelledData:
    """Return a data set's images or text (uint8) and labels (int64), every byte checked.

    Nothing is fetched over a network: `fetch` does that.

    Args:
        name: `mnist-embedded` and `languages` (always here), `mnist`, `fashion-mnist`, `cifar10`,
            `cifar100` or `mini-imagenet`.
        root: A folder that holds it in a usual layout (torchvision's, the makers' own; for
            mini-ImageNet also a zip). None looks into our own folder: `RECOLLECT_DATA`, or the
            platform's cache folder.

    Returns:
        Images of shape (n, 28, 28) for the MNISTs, (n, 3, 32, 32) for the CIFARs and
        (n, 3, 84, 84) for mini-ImageNet, which is mapped from disk rather than read; bytes of text
        of shape (n, 32) for the languages.

    Raises:
        ValueError: The name is unknown.
        DataError: It is not on this machine; the message says how to get it.
        DigestError: It is, and is damaged.

    Example:
        >>> digits = load("mnist-embedded")
        >>> digits.test.inputs.shape
        torch.Size([10000, 28, 28])
    """
    return data_set(name).load(None if root is None else Path(root).expanduser())


def fetch(name: str, *, root: str | Path | None = None, progress: Progress = no_progress) -> Path:
    """Bring a data set to this machine: from `root`, else a registry, else its makers' page.

    Safe to kill at any moment and to run twice at once; calling it again does no work.

    Args:
        name: As for `load`.
        root: A folder (or zip) to look into first.
        progress: Called with what is being fetched, the bytes here and the bytes in all.

    Returns:
        The path of our copy.

    Raises:
        ValueError: The name is unknown.
        DataError: No way worked; the message lists why and what to do next.
    """
    return data_set(name).fetch(None if root is None else Path(root).expanduser(), progress)
