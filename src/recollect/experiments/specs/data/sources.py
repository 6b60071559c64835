"""Data of the user's by kind: which files it is, what columns it has, and how it is read."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import torch

from recollect.atomic_files import require_file
from recollect.datasets import Examples, from_arrays, from_huggingface, image_folder, load
from recollect.datasets.files.decoding import decode_picture
from recollect.datasets.sources.classes import class_numbers
from recollect.datasets.sources.folders import class_folders, image_files
from recollect.datasets.sources.listing import LISTING
from recollect.datasets.sources.tables import column_names, numbers_of, read_columns
from recollect.errors import DataError, MissingExtraError
from recollect.suggestions import nearest

_READ_AT_ONCE: Final = 50_000_000  # bytes of a table, of which a column is read in a second
_MAX_ARRAY_BYTES: Final = 64_000_000_000


@dataclass(frozen=True)
class Part:
    """The training or the test part of some data, as it was read.

    Attributes:
        examples: Inputs and labels.
        class_names: By number.
        column: What the data is cut by, one value per example; empty if it is cut by class.
    """

    examples: Examples
    class_names: tuple[str, ...]
    column: Sequence[Any] = ()


class Source(ABC):
    """Some data of the user's.

    Args:
        where: The folder, file or name.
        options: What `[data]` says of how to read it.
    """

    def __init__(self, where: str, options: Mapping[str, Any]) -> None:
        self.where, self.options = where, options

    @property
    def path(self) -> Path:
        """Where it is, if that is a path."""
        return Path(self.where).expanduser()

    @property
    def root(self) -> Path:
        """The folder that the names of its files are told from."""
        return self.path.parent

    @abstractmethod
    def files(self) -> list[Path]:
        """Return the files that decide what is read; none if its name does.

        Raises:
            ValueError: It is not there, or none of the kind.
        """

    @abstractmethod
    def columns(self) -> Sequence[str] | None:
        """Return the names that `label`, `inputs` and `column` may have; None if they take none."""

    def classes(self) -> Sequence[str] | None:
        """Return the names of the classes, if they can be told at once."""
        return None

    @abstractmethod
    def read(self, column: str | None, classes: Sequence[str] | None) -> Part:
        """Read it.

        Args:
            column: What it is cut by, besides.
            classes: Names of the classes by number, if they are known already.
        """


@final
class _Folder(Source):
    """Images in one subfolder per class."""

    @property
    def root(self) -> Path:
        return self.path

    def files(self) -> list[Path]:
        if not self.path.is_dir():
            raise ValueError(f"is {self.where!r}, which is no folder.")
        found = image_files(self.path)
        if not found:
            rule = "lay them out as FOLDER/CLASS/IMAGE.png."
            raise ValueError(f"is {self.where!r}, which has no images in subfolders; {rule}")
        return found

    def columns(self) -> None:
        return None

    def classes(self) -> Sequence[str]:
        return sorted({file.parent.name for file in self.files()})

    def read(self, column: str | None, classes: Sequence[str] | None) -> Part:  # noqa: ARG002
        names = class_folders(self.path) if classes is None else classes
        size = self.options.get("size")
        examples = image_folder(
            self.path,
            size=None if size is None else (size[0], size[1]),
            mode=self.options.get("mode", "RGB"),
            classes=names,
        )
        # A photo has no other time than what its name says of it.
        return Part(examples, tuple(names), [file.name for file in image_files(self.path)])


@final
class _Table(Source):
    """A CSV or a Parquet file: numbers in columns, or one column of encoded pictures."""

    def files(self) -> list[Path]:
        column_names(self.path)
        return [self.path]

    def columns(self) -> Sequence[str]:
        return column_names(self.path)

    def classes(self) -> Sequence[str] | None:
        if self.path.stat().st_size > _READ_AT_ONCE:
            return None
        label = self.options["label"]
        return sorted({str(value) for value in read_columns(self.path, [label])[label]})

    def read(self, column: str | None, classes: Sequence[str] | None) -> Part:
        label, image = self.options["label"], self.options.get("image")
        inputs: list[str] = [image] if image is not None else self.options.get("inputs", [])
        if not inputs:
            inputs = [name for name in self.columns() if name not in (label, column)]
        wanted = dict.fromkeys([*inputs, label, *([column] if column else [])])
        cells = read_columns(self.path, list(wanted))
        if image is not None:
            pixels = self._pictures(cells[image])
        else:
            pixels = numbers_of({name: cells[name] for name in inputs}, self.path)
        labels, names = class_numbers(cells[label], classes=classes, origin=self.where)
        return Part(Examples(pixels, labels), names, cells[column] if column else ())

    def _pictures(self, cells: Sequence[Any]) -> torch.Tensor:
        size, mode = self.options.get("size"), self.options.get("mode", "RGB")
        images = []
        for row, cell in enumerate(cells):
            encoded = cell.get("bytes") if isinstance(cell, dict) else cell
            if not isinstance(encoded, bytes):
                kind = type(encoded).__name__
                raise DataError(
                    f"`{self.where}` has no picture in row {row}, but a {kind}; name a column of "
                    "encoded pictures with `image`."
                )
            side = None if size is None else (size[0], size[1])
            origin = f"{self.where}, row {row}"
            images.append(decode_picture(encoded, origin=origin, mode=mode, size=side))
        if len({image.shape for image in images}) > 1:
            raise DataError(f"`{self.where}` has pictures of several sizes; give `size`.")
        return torch.from_numpy(np.stack(images))


@final
class _Arrays(Source):
    """An `.npz` file with an array of inputs and one of labels, or an `.npy` file for each."""

    def files(self) -> list[Path]:
        files = [self.path]
        if self.path.suffix == ".npy":
            files.append(self._labels)
        elif self.path.suffix != ".npz":
            raise ValueError(f"is {self.where!r}; name an .npz or an .npy file.")
        for file in files:
            try:
                require_file(file, max_bytes=_MAX_ARRAY_BYTES)
            except OSError as error:
                raise ValueError(
                    f"is `{file}`, which cannot be read ({error.strerror})."
                ) from error
        return files

    def columns(self) -> Sequence[str] | None:
        if self.path.suffix == ".npy":
            return None
        with self._opened(self.path) as arrays:
            return list(arrays.files)

    def read(self, column: str | None, classes: Sequence[str] | None) -> Part:
        of_cut = None
        if self.path.suffix == ".npy":
            inputs, labels = self._opened(self.path), self._opened(self._labels)
        else:
            with self._opened(self.path) as arrays:
                inputs, labels = arrays[self.options["inputs"]], arrays[self.options["label"]]
                of_cut = None if column is None else arrays[column]
        if labels.dtype.kind in "iu" and classes is None:
            named = labels.astype(np.int64)
            names = tuple(map(str, range(int(named.max(initial=-1)) + 1)))
        else:
            numbers, names = class_numbers(labels.tolist(), classes=classes, origin=self.where)
            named = numbers.numpy()
        # Doubles are what numpy makes of everything; models are of floats.
        inputs = inputs.astype(np.float32) if inputs.dtype == np.float64 else inputs
        values = () if of_cut is None else of_cut.tolist()
        return Part(from_arrays(inputs, named), names, values)

    @property
    def _labels(self) -> Path:
        return Path(self.options["label"]["where"]).expanduser()

    def _opened(self, path: Path) -> Any:
        try:
            require_file(path)
            return np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise ValueError(f"is `{path}`, which numpy cannot read ({error}).") from error


@final
class _HuggingFace(Source):
    """A set of the hub at a commit, or a folder that `save_to_disk` wrote."""

    @property
    def root(self) -> Path:
        return self.path

    def files(self) -> list[Path]:
        if self.path.is_dir():
            return [file for file in sorted(self.path.rglob("*")) if file.is_file()]
        if not re.fullmatch(r"[0-9a-f]{40}", self.options.get("revision") or ""):
            raise ValueError(
                f"is {self.where!r}, a set of the hub; give `revision`, a commit of 40 digits, so "
                "that the same run has the same data. Or name a folder of `save_to_disk`."
            )
        return []

    def columns(self) -> None:
        return None  # nothing is fetched to check a spec

    def read(self, column: str | None, classes: Sequence[str] | None) -> Part:
        split = self._loaded()
        label = self.options["label"]
        feature = split.features[label]
        values = list(split[label])
        # A split need not have every class of the set.
        known = getattr(feature, "names", None)
        if known is not None:
            values, classes = [known[value] for value in values], known
        labels, names = class_numbers(values, classes=classes, origin=self.where)
        numbered = split.select_columns([self.options["inputs"]]).add_column(
            "recollect label", labels.tolist()
        )
        examples = from_huggingface(
            numbered, input_column=self.options["inputs"], label_column="recollect label"
        )
        return Part(examples, names, () if column is None else list(split[column]))

    def _loaded(self) -> Any:
        try:
            datasets: Any = import_module("datasets")
        except ImportError as error:
            raise MissingExtraError(
                "`huggingface` needs the package datasets. Run `pip install datasets`."
            ) from error
        split = self.options.get("split") or "train"
        if self.path.is_dir():
            found = datasets.load_from_disk(str(self.path))
            is_whole = isinstance(found, datasets.Dataset)
            return found if is_whole else found[split]
        return datasets.load_dataset(self.where, split=split, revision=self.options["revision"])


@final
class _Set(Source):
    """A data set of the catalogue, which knows its digests."""

    def files(self) -> list[Path]:
        if self.where not in LISTING:
            raise ValueError(f"is {self.where!r}; {nearest(self.where, LISTING)}")
        if LISTING[self.where].locate() is None:
            told = f"run `recollect data fetch {self.where}`."
            raise ValueError(f"is {self.where!r}, which is not on this machine; {told}")
        return []

    def columns(self) -> None:
        return None

    def read(self, column: str | None, classes: Sequence[str] | None) -> Part:  # noqa: ARG002
        data = load(self.where)
        return Part(data.train, data.class_names)


SOURCES: Final[Mapping[str, Callable[[str, Mapping[str, Any]], Source]]] = {
    "folder": _Folder,
    "table": _Table,
    "arrays": _Arrays,
    "huggingface": _HuggingFace,
    "set": _Set,
}
