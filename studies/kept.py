"""Records of a study in one Parquet file, apart from the store of the tables.

A study makes hundreds of runs of a few numbers each. While it works, they are in a store of their
own under `runs/`; what is done is packed into `results/tuning/BENCHMARK.parquet`, one row a run, by
the same columns as any record. `results/records`, which tables read, never sees them.
"""

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from recollect.experiments.columns import from_table, to_table
from recollect.experiments.record import Record

Identity = tuple[str, int]
Row = dict[str, Any]


def read_kept(path: Path) -> dict[Identity, Record]:
    """Return the records of a file by settings and seed; none if there is no file."""
    if not path.exists():
        return {}
    return {identity(record): record for record in from_table(pq.ParquetFile(path).read())}


def write_kept(path: Path, records: Iterable[Record], *, is_slim: bool = True) -> None:
    """Write all records of a study, sorted, so that the same records give the same file.

    Slim ones lack what a choice of settings never asks for: curves, and all but the last look
    into the memory.
    """
    rows = sorted(records, key=lambda r: (r.method, r.spec_hash, r.seed))
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.concat_tables([to_table(_slim(row) if is_slim else row) for row in rows])
    pq.write_table(table, path, compression="zstd", compression_level=19)


def identity(record: Record) -> Identity:
    """Return what tells two runs of a study apart."""
    return record.spec_hash, record.seed


def _slim(record: Record) -> Record:
    return dataclasses.replace(record, memory=record.memory[-1:], curve=())


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a study that measures what no record holds; none without a file."""
    rows: list[Row] = json.loads(path.read_text()) if path.exists() else []
    return rows
