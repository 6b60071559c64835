"""mini-ImageNet in the forms people hold it: a zip, folders, Ravi's CSVs, pickles."""

import csv
import hashlib
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.datasets.files.decoding import decode_picture
from recollect.datasets.files.restricted_pickle import read_pickle
from recollect.datasets.files.unpacking import opened_zip
from recollect.errors import DataError

SPLITS = ("train", "val", "test")
_SUFFIXES = (".jpg", ".jpeg", ".png")
_MAX_ARCHIVE_BYTES = 16_000_000_000
_MAX_PICTURE_BYTES = 64_000_000
_PICKLE_NAMES = (
    "mini-imagenet-cache-{}.pkl",
    "miniImageNet_category_split_{}.pickle",
)

ClassImages = dict[str, list[Any]]
"""Class name to what stands for each of its images, in the source's order."""


class ImageSource(ABC):
    """Images by split and class, decoded one at a time.

    Attributes:
        path: The file or folder.
    """

    path: Path

    @abstractmethod
    def files(self) -> Iterable[Path]:
        """Return the files whose names, sizes and times tell this source from a changed one."""

    @abstractmethod
    @contextmanager
    def opened(self) -> Iterator["OpenedSource"]:
        """Yield the contents."""

    def identity(self) -> str:
        """Return a short text that changes when any of the files does."""
        running = hashlib.sha256()
        for file in self.files():
            status = file.stat()
            running.update(f"{file.name} {status.st_size} {status.st_mtime_ns}\n".encode())
        return running.hexdigest()[:16]


class OpenedSource(ABC):
    """What a source holds while it is open.

    Attributes:
        splits: Split name to classes to images.
    """

    splits: dict[str, ClassImages]

    @abstractmethod
    def pixels(self, image: Any, *, side: int) -> NDArray[np.uint8]:
        """Return one image as bytes of shape (3, side, side)."""


@dataclass(frozen=True)
class ZippedFolders(ImageSource):
    """A zip of `train|val|test/<class>/*.jpg`, read in place: nothing is unpacked."""

    path: Path

    def files(self) -> Iterable[Path]:
        """Return the archive."""
        return [self.path]

    @contextmanager
    def opened(self) -> Iterator[OpenedSource]:
        """Yield its images."""
        try:
            with opened_zip(
                self.path, max_bytes=_MAX_ARCHIVE_BYTES, max_member_bytes=_MAX_PICTURE_BYTES
            ) as archive:
                yield _OpenedZip(self.path, archive)
        except zipfile.BadZipFile as error:
            raise DataError(
                f"`{self.path}` is a damaged zip archive ({error}). Get it again."
            ) from error


class _OpenedZip(OpenedSource):
    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path = path
        self._archive = archive
        self.splits = {}
        for name in sorted(archive.namelist()):
            parts = PurePosixPath(name).parts
            if len(parts) >= 3 and parts[-3] in SPLITS and name.lower().endswith(_SUFFIXES):
                self.splits.setdefault(parts[-3], {}).setdefault(parts[-2], []).append(name)

    def pixels(self, image: Any, *, side: int) -> NDArray[np.uint8]:
        # The archive's own checksum is compared as the bytes are read.
        encoded = self._archive.read(image)
        return decode_picture(encoded, origin=f"{self._path}: {image}", size=(side, side))


class _OpenedFiles(OpenedSource):
    def __init__(self, splits: dict[str, ClassImages]) -> None:
        self.splits = splits

    def pixels(self, image: Any, *, side: int) -> NDArray[np.uint8]:
        return decode_picture(image, origin=str(image), size=(side, side))


@dataclass(frozen=True)
class Folders(ImageSource):
    """Folders `train|val|test/<class>/*.jpg`."""

    path: Path

    def files(self) -> Iterable[Path]:
        """Return every image."""
        for split in SPLITS:
            yield from sorted((self.path / split).glob("*/*"))

    @contextmanager
    def opened(self) -> Iterator[OpenedSource]:
        """Yield their images, sorted by name."""
        splits: dict[str, ClassImages] = {}
        for file in self.files():
            if file.suffix.lower() in _SUFFIXES:
                split = file.parent.parent.name
                splits.setdefault(split, {}).setdefault(file.parent.name, []).append(file)
        yield _OpenedFiles(splits)


@dataclass(frozen=True)
class RaviCsvs(ImageSource):
    """Ravi's `train|val|test.csv` (columns `filename,label`) beside a folder `images`."""

    path: Path

    def files(self) -> Iterable[Path]:
        """Return the tables and the image folder; the images' own times are not looked at."""
        tables = [self.path / f"{split}.csv" for split in SPLITS]
        return [table for table in tables if table.is_file()] + [self.path / "images"]

    @contextmanager
    def opened(self) -> Iterator[OpenedSource]:
        """Yield the images the tables name, in their order."""
        splits: dict[str, ClassImages] = {}
        for split in SPLITS:
            table = self.path / f"{split}.csv"
            if table.is_file():
                splits[split] = self._classes(table)
        yield _OpenedFiles(splits)

    def _classes(self, table: Path) -> ClassImages:
        classes: ClassImages = {}
        with table.open(newline="") as stream:
            for row in csv.DictReader(stream):
                if "filename" not in row or "label" not in row:
                    raise DataError(
                        f"`{table}` has the columns {sorted(map(str, row))}, not `filename` and "
                        "`label`; use the tables of Ravi and Larochelle."
                    )
                # Only the last part of the name: a table must not lead outside the folder.
                image = self.path / "images" / PurePosixPath(row["filename"]).name
                classes.setdefault(row["label"], []).append(image)
        return classes


@dataclass(frozen=True)
class Pickles(ImageSource):
    """Pickles with `image_data` and `class_dict`, or `data` and `labels`, one per split."""

    path: Path

    def files(self) -> Iterable[Path]:
        """Return the pickles, one per split."""
        return list(self._by_split().values())

    def _by_split(self) -> dict[str, Path]:
        found = {}
        for split in SPLITS:
            for name in _PICKLE_NAMES:
                spellings = (split, "train_phase_train") if split == "train" else (split,)
                for spelling in spellings:
                    if (self.path / name.format(spelling)).is_file():
                        found[split] = self.path / name.format(spelling)
        return found

    @contextmanager
    def opened(self) -> Iterator[OpenedSource]:
        """Yield their images, in each class's order."""
        yield _OpenedPickles(self._by_split())


class _OpenedPickles(OpenedSource):
    def __init__(self, pickles: dict[str, Path]) -> None:
        self.splits = {}
        self._arrays: dict[str, NDArray[np.uint8]] = {}
        for split, path in pickles.items():
            self._arrays[split], classes = _read_class_pickle(path, split)
            self.splits[split] = {
                name: [(split, index) for index in indices] for name, indices in classes.items()
            }

    def pixels(self, image: Any, *, side: int) -> NDArray[np.uint8]:
        split, index = image
        pixels: NDArray[np.uint8] = self._arrays[split][index]
        if pixels.shape != (side, side, 3):
            raise DataError(
                f"image {index} of the `{split}` pickle has shape {pixels.shape}, not "
                f"{(side, side, 3)}; use the pickles of {side}x{side} images."
            )
        return pixels.transpose(2, 0, 1)


def _read_class_pickle(path: Path, split: str) -> tuple[NDArray[np.uint8], dict[str, list[int]]]:
    content = read_pickle(path)
    if not isinstance(content, dict):
        raise _unknown_pickle(path, type(content).__name__)
    named = {_text(key): value for key, value in content.items()}
    if {"image_data", "class_dict"} <= named.keys():
        images, classes = named["image_data"], _as_classes(named["class_dict"])
    elif {"data", "labels"} <= named.keys():
        images, classes = named["data"], {}
        for index, label in enumerate(named["labels"]):
            # A number means something within its own file only.
            name = (
                f"{split}-{int(label):03d}" if isinstance(label, int | np.integer) else _text(label)
            )
            classes.setdefault(name, []).append(index)
    else:
        raise _unknown_pickle(path, f"a dict of {sorted(named)}")
    array = np.asarray(images)
    highest = max((max(indices) for indices in classes.values() if indices), default=-1)
    if array.dtype != np.uint8 or array.ndim != 4 or highest >= len(array):
        raise _unknown_pickle(path, f"images of {array.dtype}{array.shape}, indices to {highest}")
    return array, classes


def _as_classes(class_dict: Any) -> dict[str, list[int]]:
    return {_text(name): [int(index) for index in indices] for name, indices in class_dict.items()}


def _text(value: Any) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else str(value)


def _unknown_pickle(path: Path, found: str) -> DataError:
    return DataError(
        f"`{path}` holds {found}; expected a dict with `image_data` and `class_dict`, or `data` "
        "and `labels`, whose images are uint8 of shape (n, 84, 84, 3)."
    )


def find_source(path: Path) -> ImageSource | None:
    """Recognise the form mini-ImageNet has at `path`, or return None.

    Args:
        path: A zip archive, or a folder that holds any of the forms or a subfolder that does.
    """
    if path.is_file():
        return ZippedFolders(path) if zipfile.is_zipfile(path) else None
    for folder in (path, path / "mini-imagenet", path / "miniImageNet", path / "miniimagenet"):
        if source := _source_in(folder):
            return source
    return None


def _source_in(folder: Path) -> ImageSource | None:
    if (folder / "train").is_dir() and (folder / "test").is_dir():
        return Folders(folder)
    if (folder / "train.csv").is_file() and (folder / "images").is_dir():
        return RaviCsvs(folder)
    if any(True for _ in Pickles(folder).files()):
        return Pickles(folder)
    zips = sorted(folder.glob("mini*imagenet*.zip"))
    return ZippedFolders(zips[0]) if zips else None
