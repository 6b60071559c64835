"""mini-ImageNet: 100 classes of 600 photographs, decoded once into a memory-mapped cache."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from recollect.datasets.dataset import DataSet
from recollect.datasets.examples import Examples, LabelledData
from recollect.datasets.files.digests import check_file, digest_of
from recollect.datasets.files.disk import locked, require_space, staged_folder
from recollect.datasets.files.downloads import Progress, no_progress
from recollect.datasets.files.roots import cache_root
from recollect.datasets.sources.class_images import (
    SPLITS,
    ClassImages,
    ImageSource,
    OpenedSource,
    ZippedFolders,
    find_source,
)
from recollect.datasets.sources.layouts import find_decoded
from recollect.datasets.sources.listing import LISTING, About
from recollect.errors import DataError

_ARRAYS = ("train-inputs.npy", "train-labels.npy", "test-inputs.npy", "test-labels.npy")
# An archive of exactly this size must be exactly this archive.
_KNOWN_ARCHIVES = {
    137_341_548: "13d210f358409c8ecd714332b52a9bdb5a9b2a356d3332c28f466629b405b353",
}
_FORMS = (
    "a zip or folder of `train|test/<class>/*.jpg`, `mini-imagenet-cache-{train,val,test}.pkl`, or "
    "`train|val|test.csv` with a folder `images`"
)

_ABOUT = LISTING["mini-imagenet"].about


@dataclass(frozen=True)
class MiniImageNet(DataSet):
    """mini-ImageNet, from whichever form the user has.

    Where the source splits classes (few-shot learning: 64 + 16 + 20), the splits are joined and
    each class's first images, in the source's order, are for training and the rest for testing.

    Attributes:
        num_classes: How many classes there must be.
        train_per_class: How many training images each must have.
        test_per_class: How many test images each must have.
        side: Height and width; other sizes are resized (Lanczos).
    """

    about: About = _ABOUT
    num_classes: int = 100
    train_per_class: int = 500
    test_per_class: int = 100
    side: int = 84

    def locate(self) -> Path | None:
        """Return the newest decoded copy, or None."""
        return find_decoded(self.about.name)

    def load(self, root: Path | None = None) -> LabelledData:
        """Map the decoded images into memory; decode them first if `root` is new to us.

        Args:
            root: A zip or folder in one of the known forms. None takes what was decoded last.

        Raises:
            DataError: It is not there, or not 100 classes of 500 + 100 images, or damaged.
        """
        copy = self.locate()
        if root is not None or copy is None:
            copy = self.fetch(root, no_progress)
        return self._mapped(copy)

    def fetch(self, root: Path | None, progress: Progress) -> Path:
        """Decode the images into our folder, once for each state of the source.

        Raises:
            DataError: It is not there, or not 100 classes of 500 + 100 images, or damaged.
            DiskSpaceError: There is no room for the decoded images.
        """
        source = self._source(root)
        if source is None:
            if root is None and (copy := self.locate()) is not None:
                return copy
            raise DataError(
                f"`mini-imagenet` is not in `{root or cache_root()}` (looked for {_FORMS}). "
                "ImageNet's terms do not let us fetch it: get it from a colleague or build it "
                "from ImageNet, then run `recollect data fetch mini-imagenet --root PATH`."
            )
        folder = cache_root() / self.about.name
        target = folder / source.identity()
        with locked(folder / ".lock"):
            if not (target / "about.json").is_file():
                self._decode_into(target, source, progress)
        return target

    def _source(self, root: Path | None) -> ImageSource | None:
        places = [root] if root is not None else [cache_root() / self.about.name, cache_root()]
        return next(filter(None, map(find_source, places)), None)

    def _decode_into(self, target: Path, source: ImageSource, progress: Progress) -> None:
        num_images = self.num_classes * (self.train_per_class + self.test_per_class)
        require_space(target.parent, num_images * 3 * self.side * self.side)
        _check_known_archive(source)
        with source.opened() as opened, staged_folder(target) as staging:
            names, train, test = self._divided(opened.splits, source.path)
            for split, images in (("train", train), ("test", test)):
                self._write(staging, split, images, opened, progress)
            digests = {name: digest_of(staging / name, algorithm="sha256") for name in _ARRAYS}
            about = {"source": source.path.name, "class_names": names, "sha256": digests}
            (staging / "about.json").write_text(json.dumps(about, indent=1))

    def _divided(
        self, splits: dict[str, ClassImages], path: Path
    ) -> tuple[list[str], list[list[Any]], list[list[Any]]]:
        """Return class names, and for each class its training and its test images."""
        train, test = splits.get("train", {}), splits.get("test", {})
        names = sorted({name for split in SPLITS for name in splits.get(split, {})})
        if not (train and train.keys() == test.keys() and "val" not in splits):
            together = {
                name: [image for split in SPLITS for image in splits.get(split, {}).get(name, [])]
                for name in names
            }
            train = {name: images[: self.train_per_class] for name, images in together.items()}
            test = {name: images[self.train_per_class :] for name, images in together.items()}
        counts = {(len(train[name]), len(test[name])) for name in names}
        if len(names) != self.num_classes or counts != {
            (self.train_per_class, self.test_per_class)
        }:
            raise DataError(
                f"`{path}` has {len(names)} classes with (training, test) images "
                f"{sorted(counts)[:4]}; mini-ImageNet has {self.num_classes} with "
                f"{(self.train_per_class, self.test_per_class)}. Get a complete copy, or load it "
                "with `image_folder` if it is another data set."
            )
        return names, [train[name] for name in names], [test[name] for name in names]

    def _write(
        self,
        staging: Path,
        split: str,
        images: list[list[Any]],
        opened: OpenedSource,
        progress: Progress,
    ) -> None:
        labels = [label for label, own in enumerate(images) for _ in own]
        np.save(staging / f"{split}-labels.npy", np.asarray(labels, dtype=np.int64))
        array = np.lib.format.open_memmap(
            staging / f"{split}-inputs.npy",
            mode="w+",
            dtype=np.uint8,
            shape=(len(labels), 3, self.side, self.side),
        )
        for index, image in enumerate(_flat(images)):
            array[index] = opened.pixels(image, side=self.side)
            if index % 500 == 0:
                progress(f"decoding {split} images", index, len(labels))
        array.flush()

    def _mapped(self, copy: Path) -> LabelledData:
        about = json.loads((copy / "about.json").read_text())
        train_inputs, train_labels, test_inputs, test_labels = (
            _map_array(copy / name) for name in _ARRAYS
        )
        return LabelledData(
            name=self.about.name,
            train=Examples(train_inputs, train_labels),
            test=Examples(test_inputs, test_labels),
            class_names=tuple(about["class_names"]),
        )

    def verify(self, root: Path | None = None) -> list[tuple[str, str]]:
        """Hash the decoded images again, against the digests taken when they were decoded.

        Raises:
            DataError: Nothing was decoded yet.
            DigestError: A file has changed since.
        """
        copy = self.locate() if root is None else self.fetch(root, no_progress)
        if copy is None:
            copy = self.fetch(None, no_progress)
        digests = json.loads((copy / "about.json").read_text())["sha256"]
        for name in _ARRAYS:
            check_file(copy / name, expected=digests[name], algorithm="sha256")
        return [(name, f"sha256 {digests[name]}") for name in _ARRAYS]


def _flat(images: list[list[Any]]) -> Iterable[Any]:
    return (image for own in images for image in own)


def _check_known_archive(source: ImageSource) -> None:
    if isinstance(source, ZippedFolders):
        known = _KNOWN_ARCHIVES.get(source.path.stat().st_size)
        if known is not None:
            check_file(source.path, expected=known, algorithm="sha256")


def _map_array(path: Path) -> torch.Tensor:
    # Copy on write: a caller's in-place change stays in its own memory and never reaches the file.
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="c", allow_pickle=False)
    except (ValueError, OSError) as error:
        raise DataError(
            f"`{path}` is damaged ({error}). Delete its folder and run `recollect data fetch "
            "mini-imagenet` again."
        ) from error
    return torch.from_numpy(array)


MINI_IMAGENET = MiniImageNet()
