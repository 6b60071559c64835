"""Data sets whose every file has a published md5, however the bytes reached this machine."""

import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from recollect.datasets.dataset import DataSet, not_here
from recollect.datasets.examples import LabelledData
from recollect.datasets.files.digests import check_bytes
from recollect.datasets.files.disk import locked, require_space, staged_folder
from recollect.datasets.files.downloads import Progress
from recollect.datasets.files.roots import cache_root
from recollect.datasets.sources.layouts import find_published
from recollect.datasets.sources.listing import About
from recollect.errors import DataError, DiskSpaceError, MissingExtraError

Contents = dict[str, bytes]
"""File name to the file's bytes, as the makers published them."""


@dataclass(frozen=True)
class Way:
    """One way to get a data set's files.

    Attributes:
        title: Shown to the user, also when the way fails.
        read: Given a scratch folder and a progress callback, returns the files, or None if this
            way has nothing to offer. Files named `*.part` in the scratch folder survive a kill.
    """

    title: str
    read: Callable[[Path, Progress], Contents | None]


@dataclass(frozen=True)
class PublishedFiles(DataSet):
    """A data set made of files with published md5s.

    Attributes:
        about: What it is.
        md5s: File name to published md5: what every way must give.
        layouts: The folder layouts `find_folder` knows, in words.
        find_folder: Returns the folder under a root that holds the files in some form, or None.
        read_folder: Returns the files from such a folder, in their published form.
        ways: How to get the files when no folder has them, in this order.
        decode: Turns the checked files into tensors.
    """

    about: About
    md5s: Mapping[str, str]
    layouts: str
    find_folder: Callable[[Path], Path | None]
    read_folder: Callable[[Path], Contents]
    ways: tuple[Way, ...]
    decode: Callable[[Contents], LabelledData]

    def locate(self) -> Path | None:
        """Return where a copy lies under our folder, or None."""
        return self._find(None)

    def _find(self, root: Path | None) -> Path | None:
        return find_published(self.about.name, self.find_folder, root)

    def load(self, root: Path | None = None) -> LabelledData:
        """Read, check against the published md5s, decode.

        Raises:
            DataError: It is not there.
            DigestError: It is damaged.
        """
        return self.decode(self._checked(root))

    def verify(self, root: Path | None = None) -> list[tuple[str, str]]:
        """Hash every file again.

        Raises:
            DataError: It is not there.
            DigestError: It is damaged.
        """
        self._checked(root)
        return [(name, f"md5 {md5}") for name, md5 in self.md5s.items()]

    def _checked(self, root: Path | None) -> Contents:
        folder = self._find(root)
        if folder is None:
            looked_in = root if root is not None else cache_root()
            raise not_here(self.about.name, looked_in=looked_in, layouts=self.layouts)
        contents = self.read_folder(folder)
        self._check(contents, origin=str(folder))
        return contents

    def _check(self, contents: Contents, *, origin: str) -> None:
        for name, md5 in self.md5s.items():
            check_bytes(contents[name], expected=md5, origin=f"{origin}: {name}")

    def fetch(self, root: Path | None, progress: Progress) -> Path:
        """Try the folder `root`, then each way in order, until the published bytes are here.

        Raises:
            DataError: No way worked; the message says why each did not and what to do next.
            DiskSpaceError: There is no room, whichever way.
        """
        cache = cache_root()
        target = cache / self.about.name
        scratch = cache / f".{self.about.name}.scratch"
        with locked(cache / f".{self.about.name}.lock"):
            if root is None and (found := self._whole_copy()) is not None:
                return found
            require_space(cache, self.about.num_bytes)
            scratch.mkdir(exist_ok=True)
            self._land(self._first_that_works(root, scratch, progress), target)
            shutil.rmtree(scratch, ignore_errors=True)
        return target

    def _whole_copy(self) -> Path | None:
        try:
            self._checked(None)
        except DataError:
            # Absent or damaged: either way it is to be fetched, and replaced by one rename.
            return None
        return self._find(None)

    def _first_that_works(self, root: Path | None, scratch: Path, progress: Progress) -> Contents:
        if root is not None and self.find_folder(root) is not None:
            # The user named it: if it is damaged they should hear so, not get other bytes.
            return self._checked(root)
        failures = [] if root is None else [f"`{root}`: nothing we know there"]
        for way in self.ways:
            _sweep(scratch)
            progress(way.title, 0, None)
            try:
                contents = way.read(scratch, progress)
                if contents is not None:
                    self._check(contents, origin=way.title)
                    return contents
                failures.append(f"{way.title}: not there")
            except DiskSpaceError:
                raise
            except (DataError, MissingExtraError) as error:
                failures.append(f"{way.title}: {error}")
        raise self._nothing_worked(failures)

    def _nothing_worked(self, failures: list[str]) -> DataError:
        tried = "".join(f"\n  - {failure}" for failure in failures)
        return DataError(
            f"`{self.about.name}` could not be fetched. Tried:{tried}\nGet the files from "
            f"{self.about.homepage} on a machine with a network, bring the folder here "
            f"({self.layouts}) and run `recollect data fetch {self.about.name} --root FOLDER`."
        )

    def _land(self, contents: Contents, target: Path) -> None:
        with staged_folder(target) as staging:
            for name in self.md5s:
                (staging / name).write_bytes(contents[name])


def fresh_folder(scratch: Path) -> Path:
    """Return an empty folder that no other process, not even an orphan of ours, writes into."""
    return Path(tempfile.mkdtemp(dir=scratch))


def _sweep(scratch: Path) -> None:
    """Remove what a killed attempt left, except downloads that can be continued."""
    for entry in scratch.iterdir():
        if entry.is_dir():
            # A registry client that outlived a killed fetch may still be writing in there.
            shutil.rmtree(entry, ignore_errors=True)
        elif entry.suffix not in (".part", ".lock"):
            entry.unlink()
