"""Files that commands write: a name that cannot work is refused, a failed write explained."""

import codecs
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from recollect.errors import RecollectError

FIGURES: Final = (".png", ".svg", ".pdf")
_AS_GIVEN: Final = "recollect-as-given"
CONTACT_SHEETS: Final = (
    *(".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp"),
    *(".tif", ".tiff", ".pdf"),
)


def check_output(path: Path, endings: Sequence[str] = ()) -> None:
    """Refuse a file that cannot be written, before the work that would be lost with it.

    Args:
        path: The file.
        endings: What its name may end in, with the dot; anything if there are none.

    Raises:
        RecollectError: The ending is none of these, or there is no such folder to write to.
    """
    ending = path.suffix.lower()
    if endings and ending not in endings:
        raise RecollectError(f"`{path}` ends in {ending!r}; end it in {', '.join(endings)}.")
    with write_explained(path):
        if path.is_dir():
            raise RecollectError(f"`{path}` is a folder; name a file in it.")
        if not path.parent.is_dir():
            raise RecollectError(f"`{path.parent}` is not a folder; create it, or write elsewhere.")
        if not path.exists() and not os.access(path.parent, os.W_OK):
            raise RecollectError(
                f"`{path}` cannot be written (its folder is read-only); write elsewhere."
            )


def path_in_words(path: Path) -> str:
    """Return a path as text that any file can hold, also one whose bytes are no text."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def survive_any_text() -> None:
    """Let the process print what its terminal's encoding lacks, instead of ending in an error.

    Bytes of a path that Python could not decode go out as they came in; other characters that the
    encoding lacks become question marks.
    """
    codecs.register_error(_AS_GIVEN, _as_given)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_AS_GIVEN)


def _as_given(error: UnicodeError) -> tuple[str | bytes, int]:
    assert isinstance(error, UnicodeEncodeError)
    lost = error.object[error.start : error.end]
    raw = (bytes([ord(c) - 0xDC00]) if "\udc80" <= c <= "\udcff" else b"?" for c in lost)
    return b"".join(raw), error.end


@contextmanager
def write_explained(path: Path) -> Iterator[None]:
    """Turn the system's errors inside the block into one that names the file.

    Raises:
        RecollectError: The disk is full, or the file cannot be written there.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise RecollectError(f"`{path}` cannot be written ({reason}); write elsewhere.") from error
