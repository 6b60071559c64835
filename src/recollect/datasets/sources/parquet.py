"""Parquet files, through pyarrow when it is installed."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from recollect.atomic_files import require_file
from recollect.errors import DataError, MissingExtraError, UnsafeFileError

_MAX_ROWS = 20_000_000
_MAX_BYTES = 16_000_000_000


def parquet_column_names(path: Path) -> list[str]:
    """Return the names of a Parquet file's columns.

    Raises:
        DataError: It is not a Parquet file.
        UnsafeFileError: It unpacks to more than any data set.
        MissingExtraError: pyarrow is not installed.
    """
    return [str(name) for name in _opened(path).schema_arrow.names]


def read_parquet_columns(path: Path, columns: Sequence[str]) -> dict[str, list[Any]]:
    """Return the named columns of a Parquet file as Python lists.

    Raises:
        DataError: It is not a Parquet file.
        MissingExtraError: pyarrow is not installed.
    """
    opened = _opened(path)
    try:
        table = opened.read(columns=list(columns), use_threads=False)
        return {name: table.column(name).to_pylist() for name in columns}
    except Exception as error:  # pyarrow's own, and what it lets through from below
        raise _no_parquet(path, error) from error


def _opened(path: Path) -> Any:
    try:
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtraError(
            f"`{path}` is a Parquet file and pyarrow is not installed. Run `pip install pyarrow`."
        ) from error
    try:
        require_file(path)
        opened = parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise _no_parquet(path, error) from error
    about = opened.metadata
    unpacked = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    if about.num_rows > _MAX_ROWS or unpacked > _MAX_BYTES:
        raise UnsafeFileError(
            f"`{path}` states {about.num_rows:,} rows of {unpacked:,} bytes; at most "
            f"{_MAX_ROWS:,} and {_MAX_BYTES:,} are read. Split it into smaller files."
        )
    return opened


def _no_parquet(path: Path, error: Exception) -> DataError:
    return DataError(
        f"`{path}` is not a Parquet file ({error}). Pass a `.parquet` or a `.csv` file."
    )
