"""Where a run is, on disk: the learner's own file and everything counted beside it, as one.

The learner is saved under the name of its step; then `run.json`, which names it, is replaced in one
move; then older files go. Whenever the process is killed, `run.json` names a learner that is there
and belongs to it.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from recollect.errors import CheckpointError, StreamError
from recollect.experiments.machine import code, versions
from recollect.experiments.request import Request
from recollect.experiments.store import store_explained, write_whole
from recollect.experiments.tally import Tally
from recollect.learner import Learner
from recollect.streams import Stream

_LAYOUT: Final = 2


def save_run(
    folder: Path, request: Request, *, learner: Learner, stream: Stream, tally: Tally
) -> None:
    """Save where a run is, between two steps.

    Raises:
        StoreError: The disk is full or not writable. What was saved before is as it was.
    """
    name = f"learner-{learner.step}.ckpt"
    content = {
        **_identity(request),
        "learner": name,
        "stream": stream.state(),
        "tally": tally.as_dict(),
    }
    with store_explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        learner.save(folder / name)
        write_whole(folder / "run.json", json.dumps(content).encode())
    for file in folder.iterdir():
        if file.name not in (name, "run.json"):
            file.unlink(missing_ok=True)


def load_run(
    folder: Path,
    request: Request,
    *,
    learner: Learner,
    stream: Stream,
    on_left: Callable[[str], None],
) -> Tally | None:
    """Bring a fresh learner and stream to where a run was, and return what it had counted.

    Args:
        folder: Where `save_run` saved it.
        request: The run.
        learner: As it is built, before its first step.
        stream: Likewise.
        on_left: Told why a checkpoint that is there is not continued from.

    Returns:
        None if there is nothing to continue from: no checkpoint, a damaged one, or one made by
        other code, whose continuation nobody could vouch for. The run then starts anew.
    """
    if not folder.exists():
        return None
    beginning = stream.state()
    try:
        content: dict[str, Any] = json.loads((folder / "run.json").read_bytes())
        expected = json.loads(json.dumps(_identity(request)))
        if {key: content.get(key) for key in expected} != expected:
            raise CheckpointError("it was made by other code or other versions")
        tally = Tally.from_dict(content["tally"])
        stream.restore(content["stream"])
        learner.load(folder / content["learner"])  # last: it is changed only if all is well
    except (OSError, ValueError, KeyError, TypeError, CheckpointError, StreamError) as error:
        on_left(str(error))
        stream.restore(beginning)
        shutil.rmtree(folder, ignore_errors=True)
        return None
    tally.num_resumes += 1
    return tally


def _identity(request: Request) -> dict[str, object]:
    return {
        "layout": _LAYOUT,
        "spec_hash": request.cell.spec_hash,
        "seed": request.seed,
        "versions": versions(),
        "code": code(),
    }
