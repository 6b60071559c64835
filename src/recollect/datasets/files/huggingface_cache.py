"""Image sets the Hugging Face client has already put on this machine."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recollect.datasets.files.decoding import decode_picture
from recollect.datasets.files.roots import huggingface_hub
from recollect.datasets.sources.parquet import read_parquet_columns
from recollect.errors import DataError

Split = tuple[NDArray[np.uint8], NDArray[np.uint8]]
"""Images, one per row, and their labels."""


@dataclass(frozen=True)
class HubCopy:
    """How a data set looks in the hub's cache.

    Attributes:
        repositories: Names it has gone by, newest first.
        image_column: The column with the encoded image.
        label_column: The column with the class number.
    """

    repositories: tuple[str, ...]
    image_column: str
    label_column: str


def read_hub_images(copy: HubCopy) -> tuple[Split, Split] | None:
    """Return the train and test split in their original order, or None if they are not there.

    Raises:
        DataError: The files are there and cannot be read.
        MissingExtraError: The files are there and pyarrow is not.
    """
    for repository in copy.repositories:
        snapshots = huggingface_hub() / f"datasets--{repository.replace('/', '--')}" / "snapshots"
        for snapshot in sorted(snapshots.glob("*")):
            train, test = (sorted(snapshot.rglob(f"{split}-*.parquet")) for split in _SPLITS)
            if train and test:
                return _read_split(train, copy), _read_split(test, copy)
    return None


_SPLITS = ("train", "test")


def _read_split(files: list[Path], copy: HubCopy) -> Split:
    images: list[NDArray[np.uint8]] = []
    labels: list[int] = []
    for file in files:
        columns = read_parquet_columns(file, (copy.image_column, copy.label_column))
        labels.extend(columns[copy.label_column])
        images.extend(_decoded(cell, file) for cell in columns[copy.image_column])
    return np.stack(images), np.asarray(labels, dtype=np.uint8)


def _decoded(cell: object, file: Path) -> NDArray[np.uint8]:
    if not (isinstance(cell, dict) and isinstance(cell.get("bytes"), bytes)):
        raise DataError(
            f"`{file}` has an image cell without bytes; fetch the data set another way."
        )
    return decode_picture(cell["bytes"], origin=f"{file}: an image", mode=None)
