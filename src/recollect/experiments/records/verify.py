"""Is what a store holds still what was written?"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow.parquet as pq  # type: ignore[import-untyped]

from recollect.checkpoint import read_checkpoint
from recollect.errors import CheckpointError, StoreError
from recollect.experiments.records.columns import has_digests
from recollect.experiments.records.store import read_file
from recollect.experiments.running.resume import read_run
from recollect.experiments.running.snapshots import code_folders, problem_with

State = Literal["sound", "without digest", "damaged"]


@dataclass(frozen=True)
class Verdict:
    """What was found of one file of records, or of the checkpoint of one run under way.

    Or of the code of a sweep, if it is damaged.

    Attributes:
        path: The file, or the folder of the checkpoint or the code.
        state: `"without digest"` means that it can be read, but not checked for changes.
        num_records: How many it holds, 0 if it is damaged or a checkpoint.
        reason: What is wrong with it, if something is.
    """

    path: Path
    state: State
    num_records: int = 0
    reason: str = ""


def verify_store(root: Path) -> Iterator[Verdict]:
    """Read everything that a store holds, and compare it with its digests."""
    for path in sorted((root / "records").glob("*/*.parquet")):
        yield _verify_records(path)
    for place in sorted((root / "checkpoints").glob("*/*/run.json")):
        yield _verify_checkpoint(place.parent)
    for folder in code_folders(root):
        if problem := problem_with(folder):
            yield Verdict(folder, "damaged", reason=f"`{folder}` {problem}")


def _verify_records(path: Path) -> Verdict:
    try:
        records = read_file(path)
    except StoreError as error:
        return Verdict(path, "damaged", reason=str(error))
    state: State = "sound" if has_digests(pq.read_schema(path)) else "without digest"
    return Verdict(path, state, len(records))


def _verify_checkpoint(folder: Path) -> Verdict:
    try:
        read_checkpoint(folder / read_run(folder)["learner"])
    except (CheckpointError, OSError) as error:
        return Verdict(folder, "damaged", reason=f"`{folder}`: {error}")
    return Verdict(folder, "sound")
