"""Records from a store, or an error that says why there are none."""

import os
from pathlib import Path
from urllib.parse import quote

from recollect.errors import RecollectError
from recollect.experiments.records.record import Record


def read_store(path: Path) -> list[Record]:
    """Read every record of a store.

    Raises:
        RecollectError: There is no store, or it is empty.
    """
    if not path.exists():
        raise RecollectError(
            f"`{path}` does not exist; run something first (`recollect run --out {path}`), or give "
            "the folder that an earlier run wrote to."
        )
    # Reading takes pyarrow and its time to import; a mistake in the command is told without it.
    from recollect.experiments.records.store import read_records

    records = list(read_records(path))
    if not records:
        raise RecollectError(
            f"`{path}` holds no records; run something first (`recollect run --out {path}`)."
        )
    return records


def links_to_code(store: Path, page: Path) -> dict[str, str]:
    """Return a link for each code that a store keeps, by its digest, as a page needs it.

    Args:
        store: The folder of the store.
        page: Where the page will be: links are relative to it.
    """
    start = page.resolve().parent
    return {
        folder.parent.name: quote(os.path.relpath(folder.resolve(), start)) + "/"
        for folder in sorted((store / "code").glob("*/recollect"))
    }
