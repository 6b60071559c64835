"""The code of a sweep, kept in its store: edits of the source do not reach runs that were begun.

    code/DIGEST/recollect/...     what makes runs, as it was when a sweep began; `about.json` beside
    code/parts/DIGEST/idea.py     a part from a file of the user, with what it imports beside it

A folder is written once, under the digest of what it holds, and checked whenever it is used.
"""

import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import recollect
from recollect.atomic_files import locked, staged_folder
from recollect.errors import StoreError
from recollect.experiments.records.store import Store, store_explained
from recollect.experiments.running.machine import ABOUT, commit, digest_of, source
from recollect.experiments.specs.own_parts import files_of
from recollect.experiments.specs.request import Request

_PACKAGE: Final = "recollect"
_EARLIEST: Final = (1980, 1, 1, 0, 0, 0)  # what a zip can say; the same code is the same bytes


@dataclass(frozen=True)
class Snapshot:
    """Which code makes a run.

    Attributes:
        package: Digest of the package.
        parts: For the SHA-256 of each file that a cell names, the digest of the folder it is in.
    """

    package: str
    parts: Mapping[str, str] = field(default_factory=dict)


def take_snapshot(store: Store, requests: Iterable[Request]) -> Snapshot:
    """Keep the code of today in the store: of the package, and of all parts that runs need.

    Raises:
        StoreError: The disk is full or not writable.
        ValueError: A part's file was changed since the spec was read.
    """
    files = source()
    digest = digest_of(files)
    about = {
        "commit": commit(),
        "recollect": recollect.__version__,
        "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    _keep(
        package_folder(store, digest),
        {f"{_PACKAGE}/{name}": content for name, content in files.items()},
        {ABOUT: json.dumps(about).encode()},
    )
    return Snapshot(digest, take_parts(store, requests))


def take_parts(store: Store, requests: Iterable[Request]) -> dict[str, str]:
    """Keep the parts that runs need in the store; `Snapshot.parts` of them."""
    parts = {}
    for sha256, where in sorted(_parts_of(requests).items()):
        beside = files_of(where, sha256)
        parts[sha256] = digest_of(beside)
        _keep(part_folder(store, parts[sha256]), beside)
    return parts


def check_snapshot(store: Store, snapshot: Snapshot) -> None:
    """Refuse code that is not there, or not what was kept.

    Raises:
        StoreError: It is so.
    """
    folders = [package_folder(store, snapshot.package)]
    folders += [part_folder(store, digest) for digest in snapshot.parts.values()]
    for folder in folders:
        if problem := problem_with(folder):
            raise StoreError(
                f"`{folder}` {problem}, so that runs that it began cannot be continued with it. "
                "Bring it back, or give the command with --fresh: it begins them anew with the "
                "source of today."
            )


def problem_with(folder: Path) -> str:
    """Say what is wrong with a folder of code, "" if nothing is."""
    if not folder.is_dir():
        return "is not there"
    package = folder / _PACKAGE
    top = package if package.is_dir() else folder
    return "" if digest_of(_files_in(top)) == folder.name else "was altered after it was written"


def package_folder(store: Store, digest: str) -> Path:
    """Return the folder that a snapshot of the package is imported from."""
    return store.root / "code" / digest


def part_folder(store: Store, digest: str) -> Path:
    """Return the folder of a part with its neighbours."""
    return store.root / "code" / "parts" / digest


def code_folders(root: Path) -> list[Path]:
    """Return every folder of code that a store holds."""
    folders = [*(root / "code").glob("*"), *(root / "code" / "parts").glob("*")]
    return sorted(path for path in folders if path.name != "parts" and path.name[0] != ".")


def about(store: Store, digest: str) -> dict[str, str]:
    """Return when a snapshot of the package was taken, at which commit, of which version."""
    told: dict[str, str] = json.loads((package_folder(store, digest) / ABOUT).read_bytes())
    return told


def packed(folder: Path) -> bytes:
    """Return a folder of code as a zip, for a machine that does not share the store."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in sorted(_files_in(folder, "*.py", ABOUT).items()):
            target.writestr(zipfile.ZipInfo(name, _EARLIEST), content, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def _keep(
    folder: Path, files: Mapping[str, bytes], more: Mapping[str, bytes] | None = None
) -> None:
    """Write a folder whole or not at all; what was altered is written again."""
    if not problem_with(folder):
        return
    with store_explained(folder.parents[1]):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.parent):
            if not problem_with(folder):  # another command was quicker, with the same code
                return
            with staged_folder(folder) as staging:
                for name, content in {**files, **(more or {})}.items():
                    path = staging / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)


def _files_in(folder: Path, *patterns: str) -> dict[str, bytes]:
    paths = (path for pattern in patterns or ("*.py",) for path in folder.rglob(pattern))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def _parts_of(requests: Iterable[Request]) -> dict[str, str]:
    """Return where each file is that runs need, by its SHA-256."""
    cells = {request.cell.spec_hash: request.cell for request in requests}
    named = (found for cell in cells.values() for found in cell.parts.values())
    return {found["sha256"]: found["where"] for found in named}
