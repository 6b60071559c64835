"""CSV and Parquet files with a label column."""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from recollect.atomic_files import require_file
from recollect.datasets.examples import Examples
from recollect.datasets.sources.classes import class_numbers
from recollect.datasets.sources.parquet import parquet_column_names, read_parquet_columns
from recollect.errors import DataError

if TYPE_CHECKING:
    from _csv import Reader as CsvReader


def from_table(
    path: str | Path,
    *,
    label_column: str,
    input_columns: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
) -> Examples:
    """Return examples from a table: one row per example, one number per column.

    Args:
        path: A `.csv` file with a header row, or a `.parquet` file.
        label_column: The column of classes. Integers are taken as they are; anything else is
            numbered in sorted order.
        input_columns: The columns of inputs, in order. None takes all others.
        classes: Names of the classes by number, as for a test part of the same set.

    Returns:
        float32 inputs of shape (rows, columns) and int64 labels.

    Raises:
        ValueError: The path has another suffix, or a named column is not there.
        DataError: A cell is no finite number; the message says which.
        MissingExtraError: It is a Parquet file and pyarrow is not installed.
    """
    file = Path(path).expanduser()
    if input_columns is None:
        input_columns = [name for name in column_names(file) if name != label_column]
    columns = read_columns(file, (label_column, *input_columns))
    inputs = numbers_of({name: columns[name] for name in input_columns}, file)
    labels, _ = class_numbers(columns[label_column], classes=classes, origin=str(file))
    return Examples(inputs, labels)


def column_names(file: Path) -> list[str]:
    """Return the names of a table's columns.

    Raises:
        ValueError: The path has another suffix than `.csv` and `.parquet`.
        DataError: It is no such file.
    """
    return _reader(file)[0](file)


def read_columns(file: Path, columns: Sequence[str]) -> dict[str, list[Any]]:
    """Return columns of a table, one value per row, as the file has them.

    Raises:
        ValueError: The path has another suffix, or a column is not there.
        DataError: It is no such file, or has no rows.
    """
    available = column_names(file)
    for column in columns:
        if column not in available:
            raise ValueError(f"`{column}` is no column of `{file}`; it has {', '.join(available)}.")
    read = _reader(file)[1](file, columns)
    if columns and not read[columns[0]]:
        raise DataError(f"`{file}` has no rows below its header; pass a table with examples.")
    return read


def numbers_of(columns: Mapping[str, list[Any]], file: Path) -> torch.Tensor:
    """Return columns as float32, one row per example.

    Raises:
        DataError: A cell is no finite number; the message says which.
    """
    stacked = [_numbers(values, name, file) for name, values in columns.items()]
    return torch.from_numpy(np.stack(stacked, axis=1))


def _reader(file: Path) -> "_Reader":
    if file.suffix.lower() not in _READERS:
        raise ValueError(f"`path` is `{file}`; pass a `.csv` or a `.parquet` file.")
    return _READERS[file.suffix.lower()]


def _csv_column_names(file: Path) -> list[str]:
    with _csv_rows(file) as rows:
        return next(rows, [])


@contextmanager
def _csv_rows(file: Path) -> Iterator["CsvReader"]:
    try:
        require_file(file)
        with file.open(newline="", encoding="utf-8-sig") as stream:
            yield csv.reader(stream)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            f"`{file}` cannot be read as a table ({error}); pass a CSV file in UTF-8."
        ) from error


def _read_csv_columns(file: Path, columns: Sequence[str]) -> dict[str, list[Any]]:
    with _csv_rows(file) as rows:
        header = next(rows)
        cells: list[list[str]] = []
        for row in rows:
            if len(row) != len(header):
                raise DataError(
                    f"`{file}` has {len(row)} cells in line {rows.line_num}, its header has "
                    f"{len(header)}; correct the line."
                )
            cells.append(row)
    positions = {name: header.index(name) for name in columns}
    return {name: [row[position] for row in cells] for name, position in positions.items()}


_Reader = tuple[Callable[[Path], list[str]], Callable[[Path, Sequence[str]], dict[str, list[Any]]]]
_READERS: Final[Mapping[str, _Reader]] = {
    ".csv": (_csv_column_names, _read_csv_columns),
    ".parquet": (parquet_column_names, read_parquet_columns),
}


def _numbers(values: list[Any], column: str, file: Path) -> NDArray[np.float32]:
    try:
        numbers = np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError):
        numbers = np.asarray([_number_or_nan(value) for value in values], dtype=np.float32)
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise DataError(
            f"`{file}` has `{values[row]}` in column `{column}`, example {row}: not a finite "
            "number. Correct the cell, or leave the column out with `input_columns`."
        )
    return numbers


def _number_or_nan(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")
