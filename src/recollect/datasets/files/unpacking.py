"""Archives from elsewhere, unpacked as if they were hostile."""

import os
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from recollect.atomic_files import require_file
from recollect.errors import UnsafeFileError

_CHUNK = 1 << 20
_MAX_MEMBERS = 1_000_000
# Long names and other attributes stand in headers of their own. The standard library reads one in
# time that grows with its square, and a chain of them by recursion.
_MAX_EXTENDED_HEADERS = 200
_MAX_EXTENDED_BYTES = 1024
_EXTENDED = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
_MAX_DIRECTORY_BYTES = 16 << 20  # of a zip: its list of members is read whole
_END_OF_ZIP = b"PK\5\6"
_END_OF_ZIP64 = b"PK\6\6"


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
        require_file(archive)
        _scan_tar(archive, max_bytes)
        found = set()
        with _opened_tar(archive) as opened:
            for member in opened:
                name = PurePosixPath(member.name).name
                if member.isreg() and name in wanted and name not in found:
                    content = opened.extractfile(member)
                    assert content is not None  # a regular file has content
                    _write(content, into / name, max_bytes=member.size)
                    found.add(name)
    except (tarfile.TarError, EOFError, OSError, zlib.error, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise UnsafeFileError(
            f"`{archive}` cannot be read as a tar archive ({error}). Delete it and fetch again."
        ) from error
    _require_all(archive, found, wanted)


def _scan_tar(archive: Path, max_bytes: int) -> None:
    total = 0
    with _opened_tar(archive) as opened:
        # The size is added before the next header is sought, so a bomb is refused unexpanded.
        for index, member in enumerate(opened):
            check_member_name(member.name, archive=archive)
            if not (member.isreg() or member.isdir()) or member.issparse():
                raise _unsafe(archive, member.name, "is a link, a device or sparse, not a file")
            total += member.size
            _check_totals(archive, num_members=index + 1, num_bytes=total, max_bytes=max_bytes)


def _opened_tar(archive: Path) -> tarfile.TarFile:
    """Open a tar archive, plain or gzipped, and limit what its headers may ask for."""

    class LimitedHeader(tarfile.TarInfo):
        num_extended = 0

        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "LimitedHeader":
            header = super().frombuf(buf, encoding, errors)
            if header.type in _EXTENDED:
                cls.num_extended += 1
                if header.size > _MAX_EXTENDED_BYTES or cls.num_extended > _MAX_EXTENDED_HEADERS:
                    raise UnsafeFileError(
                        f"`{archive}` has long or many extended headers; at most "
                        f"{_MAX_EXTENDED_HEADERS} of {_MAX_EXTENDED_BYTES:,} bytes are read. Pack "
                        "it again with `tar --format=ustar`, or fetch it from its source."
                    )
            return header

    with archive.open("rb") as stream:
        is_gzipped = stream.read(2) == b"\x1f\x8b"
    return tarfile.open(archive, "r:gz" if is_gzipped else "r:", tarinfo=LimitedHeader)


@contextmanager
def opened_zip(
    archive: Path, *, max_bytes: int, max_member_bytes: int
) -> Iterator[zipfile.ZipFile]:
    """Yield a zip archive, open and checked by `check_zip`.

    Raises:
        zipfile.BadZipFile: It is damaged or no zip archive.
        UnsafeFileError: It is a bomb or otherwise hostile.
    """
    size = _directory_bytes(archive)
    if size > _MAX_DIRECTORY_BYTES:
        raise UnsafeFileError(
            f"`{archive}` has a list of members of {size:,} bytes; at most "
            f"{_MAX_DIRECTORY_BYTES:,} are read. Delete it and fetch it again."
        )
    with zipfile.ZipFile(archive) as opened:
        check_zip(opened, archive=archive, max_bytes=max_bytes, max_member_bytes=max_member_bytes)
        yield opened


def _directory_bytes(archive: Path) -> int:
    """Return how long a zip archive says its list of members is, 0 if it says nothing."""
    with archive.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - (1 << 16) - 100))  # its end, the longest comment, both records
        tail = stream.read()
    stated = [0]
    for mark, offset, width in ((_END_OF_ZIP, 12, 4), (_END_OF_ZIP64, 40, 8)):
        at = tail.rfind(mark)
        if at >= 0:
            stated.append(int.from_bytes(tail[at + offset : at + offset + width], "little"))
    # All ones in the first mean that the second has the number.
    return max(length for length in stated if length != 0xFFFFFFFF)


def check_zip(
    opened: zipfile.ZipFile, *, archive: Path, max_bytes: int, max_member_bytes: int
) -> None:
    """Refuse a zip archive with members that escape, link, are encrypted, or are a bomb.

    Args:
        opened: The archive.
        archive: Its path, for the message.
        max_bytes: How large all members may be together, uncompressed.
        max_member_bytes: How large one of them may be.

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
        if member.file_size > max_member_bytes:
            too_large = f"has {member.file_size:,} bytes, of at most {max_member_bytes:,}"
            raise _unsafe(archive, member.filename, too_large)
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
