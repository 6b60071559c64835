"""Read the records that `make_runs` wrote."""

import dataclasses
import gzip
import json
from pathlib import Path
from typing import Any

from recollect.experiments.records.record import CurvePoint, MemoryPoint, Record


def read_runs() -> list[Record]:
    with gzip.open(Path(__file__).with_name("runs.jsonl.gz"), "rt") as lines:
        return [_record(json.loads(line)) for line in lines]


def _record(fields: dict[str, Any]) -> Record:
    frozen = {key: _frozen(value) for key, value in fields.items()}
    frozen["curve"] = tuple(
        CurvePoint(**{key: _frozen(value) for key, value in point.items()})
        for point in fields["curve"]
    )
    frozen["memory"] = tuple(
        MemoryPoint(**{key: _frozen(value) for key, value in point.items()})
        for point in fields["memory"]
    )
    return Record(**frozen)


def _frozen(value: Any) -> Any:
    return tuple(_frozen(entry) for entry in value) if isinstance(value, list) else value


def many(runs: list[Record], number: int) -> list[Record]:
    """Return a large store: the same cells with other seeds, each run with numbers of its own."""
    rounds = -(-number // len(runs))
    return [
        dataclasses.replace(
            run,
            seed=run.seed + 100 * turn,
            correct=tuple(
                tuple(max(0, c - (turn * 7 + i) % 5) for c in row)
                for i, row in enumerate(run.correct)
            ),
        )
        for turn in range(rounds)
        for run in runs
    ][:number]
