"""Records as Parquet: one row per run, lists and structs instead of text.

Beside the rows, in the file's own metadata, stands a digest of each: a flipped bit or a lost row is
noticed when the file is read. It is no column, so that files with and without it have one schema.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]

from recollect.errors import StoreError
from recollect.experiments.records.record import SCHEMA_VERSION, CurvePoint, MemoryPoint, Record

_COUNTS: Final = pa.list_(pa.int64())
_NUMBERS: Final = pa.list_(pa.float64())
_TEXTS: Final = pa.map_(pa.string(), pa.string())

_CURVE_POINT: Final = pa.struct([("seen", pa.int64()), ("correct", _COUNTS), ("total", _COUNTS)])
_MEMORY_POINT: Final = pa.struct(
    [
        ("seen", pa.int64()),
        ("classes", _COUNTS),
        ("counts", _COUNTS),
        ("age_quantiles", _NUMBERS),
        ("replay_quantiles", _NUMBERS),
        ("evicted_classes", _COUNTS),
        ("evicted_counts", _COUNTS),
        ("evicted_mean_age", pa.float64()),
        ("evicted_mean_score", pa.float64()),
    ]
)

# Literal, so that a change of the layout is seen as one. `record.py` says what each column means.
SCHEMA: Final = pa.schema(
    [
        ("schema_version", pa.int64()),
        ("spec_hash", pa.string()),
        ("protocol", pa.string()),
        ("benchmark", pa.string()),
        ("method", pa.string()),
        ("seed", pa.int64()),
        ("capacity", pa.int64()),
        ("passes", pa.string()),
        ("spec", pa.string()),
        ("command", pa.string()),
        ("status", pa.string()),
        ("error", pa.string()),
        ("segment_names", pa.list_(pa.string())),
        ("correct", pa.list_(_COUNTS)),
        ("total", _COUNTS),
        ("curve", pa.list_(_CURVE_POINT)),
        ("memory", pa.list_(_MEMORY_POINT)),
        ("prequential_correct", pa.int64()),
        ("prequential_total", pa.int64()),
        ("num_steps", pa.int64()),
        ("num_examples", pa.int64()),
        ("step_seconds", _NUMBERS),
        ("learn_seconds", pa.float64()),
        ("wall_seconds", pa.float64()),
        ("cpu_seconds", pa.float64()),
        ("peak_bytes", pa.int64()),
        ("num_resumes", pa.int64()),
        ("threads", pa.int64()),
        ("versions", _TEXTS),
        ("commit", pa.string()),
        ("machine", _TEXTS),
        ("started_at", pa.string()),
    ]
)


_DIGESTS: Final = b"recollect.sha256"  # of each row, in order
_FIRST_WITH_DIGESTS: Final = 2  # a `schema_version`


def to_table(*records: Record) -> pa.Table:
    """Return records as a table, one row each, with the digests of its rows."""
    table = pa.Table.from_pylist([to_row(record) for record in records], schema=SCHEMA)
    return table.replace_schema_metadata({_DIGESTS: json.dumps(_digests(table.to_pylist()))})


def to_row(record: Record) -> dict[str, Any]:
    """Return a record as lists, texts and numbers; `from_row` builds it again, also from JSON."""
    # Not `asdict`, which would copy every point of every curve.
    row = dict(vars(record))
    for name in ("curve", "memory"):
        row[name] = [vars(point) for point in row[name]]
    for name in ("versions", "machine"):
        row[name] = list(row[name].items())
    return row


def from_table(table: pa.Table) -> list[Record]:
    """Return the records of a table, of this layout or an older one.

    Columns that an older layout lacks are filled with nothing: zero, the empty text, no entries.

    Raises:
        StoreError: A record is of a newer layout, or is not what was written.
    """
    rows = table.to_pylist()
    _check_digests(table, rows)
    return [from_row(row) for row in rows]


def has_digests(schema: pa.Schema) -> bool:
    """Whether damage to the rows would be noticed; records of layout 1 were written without."""
    return _DIGESTS in (schema.metadata or {})


def _check_digests(table: pa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    what = ""
    if not rows:
        what = "holds no record, and was written with one"
    elif has_digests(table.schema):
        if json.loads(table.schema.metadata[_DIGESTS]) != _digests(rows):
            what = "was altered after it was written (the digest of a row differs)"
    elif any((row.get("schema_version") or 0) >= _FIRST_WITH_DIGESTS for row in rows):
        what = "was altered after it was written (its digests are gone)"
    if what:
        raise StoreError(f"the file {what}; move it away and run its cell again.")


def _digests(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Digest rows as pyarrow gives them back, so that writer and reader look at the same."""
    # Sorted: who adds a column or changes their order must not make older files unreadable.
    return [hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest() for row in rows]


def from_row(row: Mapping[str, Any]) -> Record:
    """Return the record of one row as pyarrow gives it."""
    layout = int(row.get("schema_version") or 0)
    if layout > SCHEMA_VERSION:
        raise StoreError(
            f"`schema_version` is {layout}, this recollect reads up to {SCHEMA_VERSION}; use the "
            "recollect that wrote the record, or a newer one."
        )
    filled = {name: read(row.get(name)) for name, read in _READERS.items()}
    filled["error"] = row.get("error")
    filled["curve"] = tuple(CurvePoint(**point) for point in filled["curve"])
    filled["memory"] = tuple(MemoryPoint(**point) for point in filled["memory"])
    filled["schema_version"] = layout
    return Record(**filled)


def _reader(kind: pa.DataType) -> Callable[[Any], Any]:
    """Return what turns a value that pyarrow gives for a type into what a record holds.

    Made once per type: a store of thousands of runs has millions of values.
    """
    if pa.types.is_map(kind):
        return lambda value: dict(value or ())
    if pa.types.is_list(kind):
        return _list_reader(_reader(kind.value_type), is_nested=pa.types.is_nested(kind.value_type))
    if pa.types.is_struct(kind):
        parts = [(part.name, _optional_reader(part.type)) for part in kind]
        return lambda value: {name: read(value.get(name)) for name, read in parts}
    missing = "" if pa.types.is_string(kind) else 0.0 if pa.types.is_floating(kind) else 0
    return lambda value: missing if value is None else value


def _list_reader(read: Callable[[Any], Any], *, is_nested: bool) -> Callable[[Any], Any]:
    def read_list(values: Sequence[Any] | None) -> tuple[Any, ...]:
        if not is_nested and values and None not in values:
            return tuple(values)  # numbers, which are as they should be
        return tuple(map(read, values or ()))

    return read_list


def _optional_reader(kind: pa.DataType) -> Callable[[Any], Any]:
    # Inside a struct a missing number means "there was none", which a zero would hide.
    return (lambda value: value) if pa.types.is_floating(kind) else _reader(kind)


_READERS: Final = {column.name: _reader(column.type) for column in SCHEMA}
