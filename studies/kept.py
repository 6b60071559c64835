"""Records of a study in one Parquet file, apart from the store of the tables.

A study makes hundreds of runs of a few numbers each. While it works, they are in a store of their
own under `runs/`; what is done is packed into `results/tuning/BENCHMARK.parquet`, one row per run,
with the columns of any record. `results/records`, which tables read, never sees them.
"""

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]

from recollect.experiments.records.columns import from_table, to_table
from recollect.experiments.records.record import Record
from recollect.experiments.running.machine import commit, machine, versions
from recollect.experiments.specs.cell import Cell

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
    table = to_table(*(_slim(row) if is_slim else row for row in rows))
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


def write_rows(path: Path, rows: list[Row], *, is_compact: bool = False) -> None:
    """Write all rows of such a study; compact ones take a line each."""
    text = json.dumps(rows, indent=1)
    if is_compact:
        text = "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]"
    path.write_text(text + "\n")


def has_row(rows: Iterable[Row], cell: Cell, seed: int) -> bool:
    """Whether a run is among the rows."""
    return any((row["spec_hash"], row["seed"]) == (cell.spec_hash, seed) for row in rows)


def made_here() -> Row:
    """Return where a row is made, for whoever makes it again."""
    return {"commit": commit(), "versions": versions(), "machine": machine()}


def mean_entries(rows: Sequence[Row], formats: Mapping[str, str]) -> list[str]:
    """Return the mean of each number over rows, as a table writes it."""
    means = {name: fmean(row[name] for row in rows) for name in formats}
    return [write.format(means[name]).replace("%", " %") for name, write in formats.items()]
