"""Parquet files, through pyarrow when it is installed."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from recollect.errors import DataError, MissingExtraError


def parquet_column_names(path: Path) -> list[str]:
    """Return the names of a Parquet file's columns.

    Raises:
        DataError: It is not a Parquet file.
        MissingExtraError: pyarrow is not installed.
    """
    return [str(name) for name in _opened(path).schema_arrow.names]


def read_parquet_columns(path: Path, columns: Sequence[str]) -> dict[str, list[Any]]:
    """Return the named columns of a Parquet file as Python lists.

    Raises:
        DataError: It is not a Parquet file.
        MissingExtraError: pyarrow is not installed.
    """
    table = _opened(path).read(columns=list(columns))
    return {name: table.column(name).to_pylist() for name in columns}


def _opened(path: Path) -> Any:
    try:
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtraError(
            f"`{path}` is a Parquet file and pyarrow is not installed. Run "
            "`pip install 'recollect[parquet]'`."
        ) from error
    try:
        return parquet.ParquetFile(path)
    except pyarrow.ArrowInvalid as error:
        raise DataError(
            f"`{path}` is not a Parquet file ({error}). Pass a `.parquet` or a `.csv` file."
        ) from error
