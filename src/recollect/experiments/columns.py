"""Records as Parquet: one row a run, lists and structs instead of text."""

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]

from recollect.errors import StoreError
from recollect.experiments.record import SCHEMA_VERSION, CurvePoint, MemoryPoint, Record

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


def to_table(record: Record) -> pa.Table:
    """Return a record as a table of one row."""
    # Not `asdict`, which would copy every point of every curve.
    row = dict(vars(record))
    for name in ("curve", "memory"):
        row[name] = [vars(point) for point in row[name]]
    for name in ("versions", "machine"):
        row[name] = list(row[name].items())
    return pa.Table.from_pylist([row], schema=SCHEMA)


def from_table(table: pa.Table) -> list[Record]:
    """Return the records of a table, of this layout or an older one.

    Columns that an older layout lacks are filled with nothing: zero, the empty text, no entries.

    Raises:
        StoreError: A record is of a newer layout.
    """
    return [from_row(row) for row in table.to_pylist()]


def from_row(row: Mapping[str, Any]) -> Record:
    """Return the record of one row as pyarrow gives it."""
    layout = int(row.get("schema_version") or 0)
    if layout > SCHEMA_VERSION:
        raise StoreError(
            f"`schema_version` is {layout}, this recollect reads up to {SCHEMA_VERSION}; use the "
            "recollect that wrote the record, or a newer one."
        )
    filled = {column.name: _value(row.get(column.name), column.type) for column in SCHEMA}
    filled["error"] = row.get("error")
    filled["curve"] = tuple(CurvePoint(**point) for point in filled["curve"])
    filled["memory"] = tuple(MemoryPoint(**point) for point in filled["memory"])
    filled["schema_version"] = layout
    return Record(**filled)


def _value(value: Any, kind: pa.DataType) -> Any:
    """Turn what pyarrow gives for a type into what a record holds."""
    if pa.types.is_map(kind):
        return dict(value or ())
    if pa.types.is_list(kind):
        return tuple(_value(entry, kind.value_type) for entry in value or ())
    if pa.types.is_struct(kind):
        return {part.name: _optional(value.get(part.name), part.type) for part in kind}
    if value is not None:
        return value
    return "" if pa.types.is_string(kind) else 0.0 if pa.types.is_floating(kind) else 0


def _optional(value: Any, kind: pa.DataType) -> Any:
    # Inside a struct a missing number means "there was none", which a zero would hide.
    return None if value is None and pa.types.is_floating(kind) else _value(value, kind)
