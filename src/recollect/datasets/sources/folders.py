"""A folder of images, one subfolder per class."""

from pathlib import Path

import numpy as np
import torch

from recollect.datasets.examples import Examples
from recollect.datasets.files.decoding import decode_picture

_SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")


def image_folder(
    path: str | Path, *, size: tuple[int, int] | None = None, mode: str = "RGB"
) -> Examples:
    """Return the images under `path/<class>/`, classes and files in sorted order.

    Args:
        path: The folder. Class 0 is the first subfolder by name. Files that are no images by
            their suffix, and names that begin with a dot, are passed over.
        size: (height, width) to resize to. None asks that all have one size already.
        mode: `RGB`, giving (n, 3, height, width), or `L` for grey, giving (n, height, width).

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
    classes = sorted(
        entry for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith(".")
    )
    files = [(label, file) for label, own in enumerate(classes) for file in _images_in(own)]
    if not files:
        raise ValueError(
            f"`path` is `{folder}`, which has no images in subfolders; lay them out as "
            "`path/<class>/<image>.png`."
        )
    images = [
        decode_picture(file, origin=str(file), mode=mode, size=size) for _label, file in files
    ]
    shapes = {image.shape[-2:] for image in images}
    if len(shapes) > 1:
        raise ValueError(
            f"`path` is `{folder}`, whose images have the sizes {sorted(shapes)[:3]}; pass "
            "`size=(height, width)` to resize them."
        )
    labels = torch.tensor([label for label, _file in files], dtype=torch.int64)
    return Examples(torch.from_numpy(np.stack(images)), labels)


def _images_in(folder: Path) -> list[Path]:
    return sorted(
        file
        for file in folder.iterdir()
        if file.suffix.lower() in _SUFFIXES and not file.name.startswith(".")
    )
