"""Files that commands write: a name that cannot work is refused, a failed write said in words."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from recollect.errors import RecollectError

FIGURES: Final = (".png", ".svg", ".pdf")
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
