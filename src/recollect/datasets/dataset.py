"""What the catalogue asks of a data set."""

from abc import ABC, abstractmethod
from pathlib import Path

from recollect.datasets.examples import LabelledData
from recollect.datasets.files.downloads import Progress
from recollect.datasets.sources.listing import About
from recollect.errors import DataError


class DataSet(ABC):
    """A data set the catalogue knows: found, fetched, verified and loaded by name."""

    about: About

    @abstractmethod
    def locate(self) -> Path | None:
        """Return where our copy lies, or None; looks at names only, reads nothing."""

    @abstractmethod
    def load(self, root: Path | None = None) -> LabelledData:
        """Return the tensors, from `root` if given, else from our copy."""

    @abstractmethod
    def fetch(self, root: Path | None, progress: Progress) -> Path:
        """Make our copy and return where it lies; `root` is looked into first."""

    @abstractmethod
    def verify(self, root: Path | None = None) -> list[tuple[str, str]]:
        """Hash every byte again; return each file's name and digest, or raise `DigestError`."""


def not_here(name: str, *, looked_in: Path, layouts: str) -> DataError:
    """Return the error for a data set that is not where we looked."""
    return DataError(
        f"`{name}` is not in `{looked_in}` (looked for {layouts}). Run `recollect data fetch "
        f"{name}`, or name the folder that holds it with `root`."
    )
