"""Two runs of one cell with one seed: are they the same?"""

from dataclasses import replace
from typing import Final

from recollect.experiments.records.record import SCHEMA_VERSION, Record

_NONE: Final = 0.0


def without_times(record: Record) -> Record:
    """Return the record less all that may differ between two runs of the same identity.

    Times, peak memory, the number of continuations and the layout go; every count stays.
    """
    return replace(
        record,
        step_seconds=(_NONE, _NONE, _NONE),
        learn_seconds=_NONE,
        wall_seconds=_NONE,
        cpu_seconds=_NONE,
        peak_bytes=0,
        num_resumes=0,
        started_at="",
        command="",
        schema_version=SCHEMA_VERSION,
    )
