"""Archives from elsewhere, unpacked as if they were hostile."""

import os
import tarfile
import zipfile
from collections.abc import Collection
from pathlib import Path, PurePosixPath
from typing import IO

from recollect.errors import UnsafeFileError

_CHUNK = 1 << 20
_MAX_MEMBERS = 1_000_000


def unpack_tar(archive: Path, into: Path, *, wanted: Collection[str], max_bytes: int) -> None:
    """Write the wanted files of a tar archive, flat, into a folder.

    Every member is looked at first, wanted or not: one that would escape the folder, a link or a
    device condemns the whole archive, before anything is written.

    Args:
        archive: A tar file, compressed or not.
        into: An existing folder.
        wanted: Base names of the files to write.
        max_bytes: How large all members may be together, uncompressed.

    Raises:
        UnsafeFileError: The archive is hostile, broken, too large or lacks a wanted file.
    """
    try:
        _scan_tar(archive, max_bytes)
        found = set()
        with tarfile.open(archive) as opened:
            for member in opened:
                name = PurePosixPath(member.name).name
                if member.isreg() and name in wanted and name not in found:
                    content = opened.extractfile(member)
                    assert content is not None  # a regular file has content
                    _write(content, into / name, max_bytes=member.size)
                    found.add(name)
    except (tarfile.TarError, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise UnsafeFileError(
            f"`{archive}` cannot be read as a tar archive ({error}). Delete it and fetch again."
        ) from error
    _require_all(archive, found, wanted)


def _scan_tar(archive: Path, max_bytes: int) -> None:
    total = 0
    with tarfile.open(archive) as opened:
        # The size is added before the next header is sought, so a bomb is refused unexpanded.
        for index, member in enumerate(opened):
            check_member_name(member.name, archive=archive)
            if not (member.isreg() or member.isdir()):
                raise _unsafe(archive, member.name, "is a link or a device, not a file")
            total += member.size
            _check_totals(archive, num_members=index + 1, num_bytes=total, max_bytes=max_bytes)


def check_zip(opened: zipfile.ZipFile, *, archive: Path, max_bytes: int) -> None:
    """Refuse a zip archive with members that escape, link, are encrypted, or are a bomb.

    Args:
        opened: The archive.
        archive: Its path, for the message.
        max_bytes: How large all members may be together, uncompressed.

    Raises:
        UnsafeFileError: It has such a member.
    """
    total = 0
    for index, member in enumerate(opened.infolist()):
        check_member_name(member.filename, archive=archive)
        if (member.external_attr >> 16) & 0o170000 == 0o120000:
            raise _unsafe(archive, member.filename, "is a link, not a file")
        if member.flag_bits & 1:
            raise _unsafe(archive, member.filename, "is encrypted")
        total += member.file_size
        _check_totals(archive, num_members=index + 1, num_bytes=total, max_bytes=max_bytes)


def check_member_name(name: str, *, archive: Path) -> None:
    """Refuse a member name that leads outside the folder it is unpacked into.

    Raises:
        UnsafeFileError: It is absolute or climbs.
    """
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in name or "\0" in name:
        raise _unsafe(archive, name, "leads outside the folder it is unpacked into")


def _check_totals(archive: Path, *, num_members: int, num_bytes: int, max_bytes: int) -> None:
    if num_bytes > max_bytes or num_members > _MAX_MEMBERS:
        raise UnsafeFileError(
            f"`{archive}` unpacks to {num_bytes:,} bytes in {num_members:,} members or more; at "
            f"most {max_bytes:,} bytes are expected. Delete it and fetch it from the source "
            "named by `recollect data list`."
        )


def _write(content: IO[bytes], target: Path, *, max_bytes: int) -> None:
    # O_EXCL and O_NOFOLLOW: never through something that is already there.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    written = 0
    with os.fdopen(os.open(target, flags, 0o644), "wb") as stream:
        while piece := content.read(_CHUNK):
            written += len(piece)
            if written > max_bytes:
                raise _unsafe(target, target.name, "is larger than its header states")
            stream.write(piece)


def _require_all(archive: Path, found: set[str], wanted: Collection[str]) -> None:
    if missing := sorted(set(wanted) - found):
        raise UnsafeFileError(
            f"`{archive}` lacks {', '.join(f'`{name}`' for name in missing)}: it is another "
            "archive. Delete it and fetch again."
        )


def _unsafe(archive: Path, member: str, why: str) -> UnsafeFileError:
    return UnsafeFileError(
        f"`{archive}` has a member `{member}` that {why}; nothing was unpacked. Delete the "
        "archive and fetch it from the source named by `recollect data list`."
    )
