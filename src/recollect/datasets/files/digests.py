"""Digests: how we know that bytes are the ones the makers published."""

import hashlib
from pathlib import Path

from recollect.errors import DigestError

_CHUNK = 1 << 20


def digest_of(path: Path, *, algorithm: str = "md5") -> str:
    """Return the hexadecimal digest of a file, read in pieces.

    Args:
        path: The file.
        algorithm: A name `hashlib` knows. md5, which old sets publish, tells damage, not malice.
    """
    running = hashlib.new(algorithm, usedforsecurity=False)
    with path.open("rb") as stream:
        while piece := stream.read(_CHUNK):
            running.update(piece)
    return running.hexdigest()


def check_bytes(content: bytes, *, expected: str, origin: str) -> None:
    """Refuse bytes whose md5 is not `expected`.

    Args:
        content: The bytes.
        expected: The published md5, hexadecimal.
        origin: Where they came from, for the message.

    Raises:
        DigestError: They are other bytes.
    """
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != expected:
        raise _wrong(origin, found=found, expected=expected, algorithm="md5")


def check_file(path: Path, *, expected: str, algorithm: str = "md5") -> None:
    """Refuse a file whose digest is not `expected`.

    Args:
        path: The file.
        expected: The published digest, hexadecimal.
        algorithm: The digest's name.

    Raises:
        DigestError: The file is damaged or is another file.
    """
    found = digest_of(path, algorithm=algorithm)
    if found != expected:
        raise _wrong(str(path), found=found, expected=expected, algorithm=algorithm)


def _wrong(origin: str, *, found: str, expected: str, algorithm: str) -> DigestError:
    return DigestError(
        f"`{origin}` has {algorithm} {found}, the published one is {expected}: the file is damaged "
        "or is another file. Delete it and run `recollect data fetch` again."
    )
