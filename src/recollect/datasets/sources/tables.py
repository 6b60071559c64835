"""CSV and Parquet files with a label column."""

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from recollect.atomic_files import require_file
from recollect.datasets.examples import Examples
from recollect.datasets.sources.parquet import parquet_column_names, read_parquet_columns
from recollect.errors import DataError

if TYPE_CHECKING:
    from _csv import Reader as CsvReader


def from_table(
    path: str | Path, *, label_column: str, input_columns: Sequence[str] | None = None
) -> Examples:
    """Return examples from a table: one row per example, one number per column.

    Args:
        path: A `.csv` file with a header row, or a `.parquet` file.
        label_column: The column of classes. Integers are taken as they are; anything else is
            numbered in sorted order.
        input_columns: The columns of inputs, in order. None takes all others.

    Returns:
        float32 inputs of shape (rows, columns) and int64 labels.

    Raises:
        ValueError: The path has another suffix, or a named column is not there.
        DataError: A cell is no finite number; the message says which.
        MissingExtraError: It is a Parquet file and pyarrow is not installed.
    """
    file = Path(path).expanduser()
    if file.suffix.lower() not in _READERS:
        raise ValueError(f"`path` is `{file}`; pass a `.csv` or a `.parquet` file.")
    names, read = _READERS[file.suffix.lower()]
    available = names(file)
    if input_columns is None:
        input_columns = [name for name in available if name != label_column]
    for column in (label_column, *input_columns):
        if column not in available:
            raise ValueError(f"`{column}` is no column of `{file}`; it has {', '.join(available)}.")
    columns = read(file, (*input_columns, label_column))
    if not columns[label_column]:
        raise DataError(f"`{file}` has no rows below its header; pass a table with examples.")
    inputs = np.stack([_numbers(columns[name], name, file) for name in input_columns], axis=1)
    return Examples(torch.from_numpy(inputs), _classes(columns[label_column]))


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


_READERS = {
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


def _classes(values: list[Any]) -> torch.Tensor:
    try:
        numbers = [int(value) for value in values]
    except (TypeError, ValueError):
        numbers = []
    # `int` also takes 1.5 and "-3" and True: only spellings of a class number count as one.
    if (
        numbers
        and min(numbers) >= 0
        and max(numbers) < 2**63
        and all(str(n) == str(v) for n, v in zip(numbers, values, strict=True))
    ):
        return torch.tensor(numbers, dtype=torch.int64)
    order = {name: label for label, name in enumerate(sorted({str(value) for value in values}))}
    return torch.tensor([order[str(value)] for value in values], dtype=torch.int64)
