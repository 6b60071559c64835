"""Parquet files written by the real library, which ships no type stubs."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any


def write_parquet(path: Path, columns: Mapping[str, Any]) -> None:
    table = import_module("pyarrow").table(dict(columns))
    import_module("pyarrow.parquet").write_table(table, path)
