"""A folder of images, one subfolder per class."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from recollect.datasets.examples import Examples
from recollect.datasets.files.decoding import decode_picture
from recollect.datasets.sources.classes import class_numbers

_SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")


def image_folder(
    path: str | Path,
    *,
    size: tuple[int, int] | None = None,
    mode: str = "RGB",
    classes: Sequence[str] | None = None,
) -> Examples:
    """Return the images under `path/<class>/`, classes and files in sorted order.

    Args:
        path: The folder. Class 0 is the first subfolder by name. Files that are no images by
            their suffix, and names that begin with a dot, are passed over.
        size: (height, width) to resize to. None asks that all have one size already.
        mode: `RGB`, giving (n, 3, height, width), or `L` for grey, giving (n, height, width).
        classes: Names of the classes by number, as for a test part of the same set, which may lack
            some. None takes the subfolders.

    Returns:
        uint8 images and their classes.

    Raises:
        ValueError: The folder has no images, or their sizes differ and `size` is None.
        DataError: An image is damaged.
    """
    if mode not in ("RGB", "L"):
        raise ValueError(f"`mode` is `{mode}`; choose `RGB` or `L`.")
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise ValueError(f"`path` is `{folder}`, which is no folder; pass one.")
    files = image_files(folder)
    if not files:
        raise ValueError(
            f"`path` is `{folder}`, which has no images in subfolders; lay them out as "
            "`path/<class>/<image>.png`."
        )
    images = [decode_picture(file, origin=str(file), mode=mode, size=size) for file in files]
    shapes = {image.shape[-2:] for image in images}
    if len(shapes) > 1:
        raise ValueError(
            f"`path` is `{folder}`, whose images have the sizes {sorted(shapes)[:3]}; pass "
            "`size=(height, width)` to resize them."
        )
    names = class_folders(folder) if classes is None else classes
    labels, _ = class_numbers([f.parent.name for f in files], classes=names, origin=str(folder))
    return Examples(torch.from_numpy(np.stack(images)), labels)


def class_folders(folder: Path) -> list[str]:
    """Return the names of the classes of a folder: those of its subfolders, sorted."""
    entries = (entry for entry in folder.iterdir() if not entry.name.startswith("."))
    return sorted(entry.name for entry in entries if entry.is_dir())


def image_files(folder: Path) -> list[Path]:
    """Return the images of a folder of classes, in the order in which they are read."""
    return [file for name in class_folders(folder) for file in _images_in(folder / name)]


def _images_in(folder: Path) -> list[Path]:
    return sorted(
        file
        for file in folder.iterdir()
        if file.suffix.lower() in _SUFFIXES and not file.name.startswith(".")
    )
