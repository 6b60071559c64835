"""Write a first spec for some data, from what is found there."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from recollect.atomic_files import require_file
from recollect.datasets.files.decoding import size_of_picture
from recollect.datasets.sources.folders import class_folders, image_files
from recollect.datasets.sources.listing import LISTING
from recollect.datasets.sources.tables import column_names, read_columns
from recollect.errors import DataError
from recollect.suggestions import nearest

_LABELS: Final = ("label", "labels", "class", "target", "kind", "category", "species", "y")
_ARRAYS: Final = (
    *(("inputs", "labels"), ("x_train", "y_train"), ("images", "labels"), ("data", "labels")),
    *(("data", "target"), ("features", "labels"), ("X", "y"), ("x", "y")),
)
_MOST_SIDE: Final = 84  # larger photos are made smaller, so that a first run takes minutes
_USUAL_SIDE: Final = 32
_SOME: Final = 50  # files and rows that are looked into
_MOST_SEGMENTS: Final = 10
_CLASSES_OF_SETS: Final = {
    "cifar100": 100,
    "mini-imagenet": 100,
}  # classes of a set; others have ten


@dataclass(frozen=True)
class _Found:
    """What some data is.

    Attributes:
        lines: Of `[data]`.
        told: What a person wants to know of it, as comments.
        classes: Names of the classes.
        count: Examples; 0 if that is not known without reading all.
    """

    lines: list[str]
    told: list[str]
    classes: Sequence[str]
    count: int = 0


def first_spec(where: str) -> str:
    """Return a spec for a folder of images, a table, arrays, or a set of the catalogue.

    Args:
        where: A path, or the name of a set.

    Raises:
        DataError: There is nothing that is known how to read.
    """
    found = _look(where)
    num = len(found.classes)
    each = _classes_per_segment(num)
    memory = max(20, min(50 * num, found.count // 5 or 50 * num))
    segments = f"{-(-num // each)} segments"
    said = [*found.lines, _beside(f"classes_per_segment = {each}", segments)]
    shown = ", ".join(map(str, found.classes[:8])) + (", ..." if num > 8 else "")
    about = [*found.told, f"{num} classes: {shown}"]
    return _PAGE.format(
        about="\n".join(f"# {line}" for line in about),
        data="\n".join(said),
        memory=_beside(f"memory = [{memory}]", "slots: examples that are kept for replay"),
    )


_PAGE: Final = """\
{about}
{memory}
seeds = 6                    # runs of each method; six is the least that can be certain

[data]
{data}
# classes = [["a", "b"], ["c"]]       # or name the classes of each segment
# class_order = "shuffled"            # or another order of the classes for each seed
# cut = "time"                        # or segments of equal length in the order of time; with a
# segments = 5                        #   table or arrays also: column = "..."
# blur = 20                           # segments flow into each other over so many examples

[stream]
batch_size = 10
# validation_per_segment = 20         # held out to choose settings on: evaluation.on = "validation"

[model]
name = "usual"               # a small ResNet for colour images of 25 pixels or more, else an MLP
# name = "net.py:Net"                 # or yours: a class that takes num_classes, in_channels, ...

[optimizer]
name = "sgd"                 # or any of torch.optim, such as "AdamW"
lr = 0.05

# [scheduler]                         # any of torch.optim.lr_scheduler, moved on with each batch
# name = "CosineAnnealingLR"
# T_max = "stream"

# [learner]
# augment = ["RandomFlip"]            # of recollect.augment; for images

[methods.van]                # no memory: what is forgotten

[methods.er]                 # experience replay

[methods.er-clip]            # replay with clipped gradients; `recollect methods` lists all
"""


def _look(where: str) -> _Found:
    path = Path(where).expanduser()
    if path.is_dir():
        return _look_at_folder(where, path)
    if path.suffix.lower() in (".csv", ".parquet"):
        return _look_at_table(where, path)
    if path.suffix in (".npz", ".npy"):
        return _look_at_arrays(where, path)
    if where in LISTING:
        about = LISTING[where].about
        classes = _CLASSES_OF_SETS.get(where, 10)
        return _Found([_line("set", where)], [about.title], [str(k) for k in range(classes)])
    raise DataError(
        f"`{where}` is no folder, no .csv, .parquet, .npz or .npy file, and no set: "
        f"{nearest(where, LISTING)}"
    )


def _look_at_folder(where: str, path: Path) -> _Found:
    lines = []
    has_parts = (path / "train").is_dir() and bool(image_files(path / "train"))
    top = where.rstrip("/")
    if has_parts:
        path, lines = path / "train", [_line("folder", f"{top}/train")]
        tests = [name for name in ("test", "val") if (path.parent / name).is_dir()]
        lines += [_line("test", f"{top}/{tests[0]}")] if tests else ["test = 0.2"]
    else:
        lines = [_line("folder", top), _beside("test = 0.2", "held out of each class")]
    files = image_files(path)
    if not files:
        raise DataError(
            f"`{where}` has no images in subfolders; lay them out as FOLDER/CLASS/IMAGE.png."
        )
    sizes = _sizes(files)
    (height, width), _ = sizes.most_common(1)[0]
    told = f"{len(files)} images, {height} x {width}" + (" and others" if len(sizes) > 1 else "")
    if len(sizes) > 1 or max(height, width) > _MOST_SIDE or height != width:
        side = min(_MOST_SIDE, max(_USUAL_SIDE, min(height, width)))
        lines.append(_beside(f"size = [{side}, {side}]", "all are resized to it"))
    return _Found(lines, [told], class_folders(path), len(files))


def _sizes(files: Sequence[Path]) -> Counter[tuple[int, int]]:
    # Drawn, as every k-th would miss what takes turns, such as originals and their thumbnails.
    some = random.Random(0).sample(files, min(len(files), _SOME))
    return Counter(size_of_picture(file, origin=str(file)) for file in some)


def _look_at_table(where: str, path: Path) -> _Found:
    names = column_names(path)
    label = next((name for key in _LABELS for name in names if name.lower() == key), names[-1])
    columns = read_columns(path, names)
    values = columns[label]
    classes = sorted({str(value) for value in values})
    lines = [_line("table", where), _beside(_line("label", label), "the column of classes")]
    pictures = [name for name in names if _is_picture(columns[name][0])]
    numbers = [n for n in names if n != label and all(map(_is_number, columns[n][:_SOME]))]
    told = [f"{len(values)} rows, columns {', '.join(names)}"]
    if pictures:
        lines += [_line("image", pictures[0]), f"size = [{_USUAL_SIDE}, {_USUAL_SIDE}]"]
    elif numbers:
        lines += [f"inputs = {json.dumps(numbers)}", 'scaling = "standard"']
    else:
        raise DataError(f"`{where}` has no column of numbers but `{label}`; add one.")
    others = [name for name in names if name not in (label, *numbers, *pictures)]
    if others:
        told.append(f'not used: {", ".join(others)}; to cut by one: cut = "column" or "time"')
    return _Found([*lines, "test = 0.2"], told, classes, len(values))


def _is_picture(value: Any) -> bool:
    return isinstance(value, bytes) or (isinstance(value, dict) and "bytes" in value)


def _is_number(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError):
        return False


def _look_at_arrays(where: str, path: Path) -> _Found:
    try:
        if path.suffix == ".npy":
            return _look_at_two_arrays(where, path, _loaded(path))
        with _loaded(path) as arrays:
            shapes = {name: arrays[name].shape for name in arrays.files}
            pair = next((p for p in _ARRAYS if p[0] in shapes and p[1] in shapes), None)
            labels = None if pair is None else arrays[pair[1]]
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"`{where}` cannot be read by numpy ({error}).") from error
    if pair is None or labels is None:
        raise DataError(
            f"`{where}` has the arrays {', '.join(shapes)}; name two of them `inputs` and `labels`."
        )
    told = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
    lines = [_line("arrays", where), _line("inputs", pair[0]), _line("label", pair[1])]
    return _Found([*lines, "test = 0.2"], [f"arrays: {told}"], _values(labels), len(labels))


def _loaded(path: Path) -> Any:
    require_file(path)
    return np.load(path, allow_pickle=False)


def _look_at_two_arrays(where: str, path: Path, inputs: Any) -> _Found:
    beside = [path.with_name(f"{name}.npy") for name in ("labels", "label", "y", "targets")]
    labels = next((file for file in beside if file.is_file()), None)
    if labels is None:
        raise DataError(f"`{where}` has no labels beside it; name them labels.npy.")
    prefix = where[: len(where) - len(path.name)]
    lines = [_line("arrays", where), _line("label", f"{prefix}{labels.name}"), "test = 0.2"]
    values = _loaded(labels)
    return _Found(lines, [f"inputs {inputs.shape}"], _values(values), len(values))


def _values(labels: Any) -> list[str]:
    return sorted({str(value) for value in labels.tolist()})


def _classes_per_segment(num: int) -> int:
    """Return a divisor that makes many segments, but no more than ten of two classes or more."""
    each = [d for d in range(2, num // 2 + 1) if num % d == 0 and num // d <= _MOST_SEGMENTS]
    return min(each, default=1)


def _beside(code: str, comment: str) -> str:
    return f"{code:<28} # {comment}"


def _line(key: str, value: str) -> str:
    return f"{key} = {json.dumps(value)}"
