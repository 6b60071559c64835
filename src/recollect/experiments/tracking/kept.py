"""Points of runs that are done, kept in the store for trackers that lack some of them.

A run's points are written before its record. So if everything is killed between the end of a run
and the last line of a tracker, the same command finds them here and writes the rest.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from recollect.atomic_files import write_whole
from recollect.errors import StoreError
from recollect.experiments.records.store import Store, store_explained
from recollect.experiments.specs.request import Request


def points_path(store: Store, request: Request) -> Path:
    """Return where the points of a run that is done will be, or are."""
    return store.root / "points" / request.cell.benchmark / f"{request.key}.json"


def keep_points(
    store: Store, request: Request, started_at: str, points: Iterable[Mapping[str, Any]]
) -> None:
    """Keep all points of a run.

    Raises:
        StoreError: The disk is full or not writable.
    """
    content = json.dumps({"started_at": started_at, "points": list(points)})
    path = points_path(store, request)
    with store_explained(store.root):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content.encode())


def kept_points(store: Store, request: Request) -> tuple[str, list[dict[str, Any]]] | None:
    """Return when a run began and its points, None if none are kept.

    Raises:
        StoreError: They are damaged.
    """
    path = points_path(store, request)
    try:
        content = json.loads(path.read_bytes())
        return content["started_at"], content["points"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"`{path}` is damaged ({error}); delete it, and what it held stays untracked."
        ) from error
