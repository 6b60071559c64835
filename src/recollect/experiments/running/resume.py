"""Where a run is, on disk: the learner's own file and everything counted beside it, as one.

The learner is saved under the name of its step; then `run.json`, which names it, is replaced in one
move; then older files go. Whenever the process is killed, `run.json` names a learner that is there
and belongs to it. What cannot be continued is kept beside it, under a name that says so: to
continue it with the code that saved it, rename it back.
"""

import hashlib
import json
import traceback
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Final

from recollect.atomic_files import write_whole
from recollect.benchmarks import Benchmark
from recollect.errors import CheckpointError, RecollectError
from recollect.experiments.records.store import store_explained
from recollect.experiments.running.machine import code, versions
from recollect.experiments.running.tally import Tally
from recollect.experiments.specs.build import build, build_schedule
from recollect.experiments.specs.named.optimizer import Schedule
from recollect.experiments.specs.request import Request
from recollect.learner import Learner
from recollect.streams import Stream

_LAYOUT: Final = 3
_RUN: Final = "run.json"


def save_run(
    folder: Path,
    request: Request,
    *,
    learner: Learner,
    stream: Stream,
    tally: Tally,
    schedule: Schedule | None = None,
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
    if schedule is not None:
        content["schedule"] = schedule.state()
    with store_explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        learner.save(folder / name)
        write_whole(folder / _RUN, signed(content))
    for file in folder.iterdir():
        if file.name not in (name, _RUN):
            file.unlink(missing_ok=True)


def begin_or_continue(
    request: Request, folder: Path | None, on_left: Callable[[str], None]
) -> tuple[Benchmark, Learner, Schedule | None, Tally | None]:
    """Build a run, and bring it to where it was.

    Args:
        request: The run.
        folder: Where `save_run` saved it. None if nowhere.
        on_left: Called if a checkpoint is not continued from, with the reason and where it is kept.

    Returns:
        Benchmark, learner, schedule if there is one, and what was counted until then. None for the
        last: the run is at its beginning, because nothing was saved, or nothing that can be
        continued: it is damaged, or made by other code, so that its continuation could differ.

    Raises:
        StoreError: What cannot be continued cannot be kept elsewhere either.
    """
    benchmark, learner, schedule = _begun(request)
    if folder is None or not (folder / _RUN).exists():  # the last thing that `save_run` writes
        return benchmark, learner, schedule, None
    try:
        tally = _continue(folder, request, learner, benchmark.stream, schedule)
        return benchmark, learner, schedule, tally
    except Exception as error:  # also of a part of the user's, which may raise anything
        kept = _keep(folder, error)
        on_left(f"{_reason(error)}; it is kept in {kept}")
    # Whatever the attempt did to the first ones.
    return *_begun(request), None


def _begun(request: Request) -> tuple[Benchmark, Learner, Schedule | None]:
    benchmark, learner = build(request.cell, request.seed)
    return benchmark, learner, build_schedule(request.cell, benchmark, learner)


def read_run(folder: Path) -> dict[str, Any]:
    """Read what `save_run` saved beside the learner, and check that it is what was written.

    Raises:
        CheckpointError: It is damaged.
    """
    written = (folder / _RUN).read_bytes()
    try:
        content = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"its {_RUN} is damaged ({error})") from error
    # Byte by byte, so that nothing depends on what JSON takes for the same.
    if not isinstance(content, dict) or written != signed(content):
        raise CheckpointError(f"its {_RUN} was altered after it was written (its digest differs)")
    return content


def _continue(
    folder: Path, request: Request, learner: Learner, stream: Stream, schedule: Schedule | None
) -> Tally:
    content = read_run(folder)
    expected = json.loads(json.dumps(_identity(request)))
    differing = [key for key in expected if content.get(key) != expected[key]]
    if differing:
        raise CheckpointError(f"it was made by other code or other versions ({_told(differing)})")
    tally = Tally.from_dict(content["tally"])
    stream.restore(content["stream"])
    learner.load(folder / content["learner"])
    if (learner.step, learner.seen) != (stream.batches_given, stream.cursor):
        raise CheckpointError(
            f"its learner has seen {learner.seen} examples where its stream has given "
            f"{stream.cursor}"
        )
    if schedule is not None:  # after the learner, whose optimizer has the rate it had then
        schedule.restore(content["schedule"])
    tally.num_resumes += 1
    return tally


def _keep(folder: Path, error: Exception) -> Path:
    """Move what cannot be continued out of the way, with the reason beside it."""
    with store_explained(folder):
        names = (folder.with_name(f"{folder.name}.kept-{number}") for number in count(1))
        kept = next(name for name in names if not name.exists())
        folder.rename(kept)
        told = "".join(traceback.format_exception(error))
        when = datetime.now(UTC).isoformat(timespec="seconds")
        write_whole(kept / "why.txt", f"{when}: not continued, because\n{told}".encode())
    return kept


def _reason(error: Exception) -> str:
    if isinstance(error, RecollectError | OSError):
        return str(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(place.filename).name}, line {place.lineno}, in {place.name}"
    return f"{type(error).__name__} while it was read: {error} ({where})"


def signed(content: Mapping[str, Any]) -> bytes:
    """Return the bytes of `run.json`: the content, and a digest of it."""
    unsigned = {key: value for key, value in content.items() if key != "sha256"}
    digest = hashlib.sha256(json.dumps(unsigned).encode()).hexdigest()
    return json.dumps({**unsigned, "sha256": digest}).encode()


def _told(differing: list[str]) -> str:
    return f"{', '.join(differing)} differ{'s' * (len(differing) == 1)}"


def _identity(request: Request) -> dict[str, object]:
    return {
        "layout": _LAYOUT,
        "spec_hash": request.cell.spec_hash,
        "seed": request.seed,
        "versions": versions(),
        "code": code(),
    }
