import os
import sys
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
import torch
from tests.unit.datasets.parquet_files import write_parquet

from recollect.datasets import Examples, from_table
from recollect.errors import DataError, MissingExtraError, UnsafeFileError

COLUMNS: dict[str, list[object]] = {"a": [1, 2, 3], "kind": ["x", "y", "x"], "b": [0.5, 1.5, 2.5]}


def write(path: Path, columns: dict[str, list[object]]) -> Path:
    if path.suffix == ".parquet":
        write_parquet(path, columns)
    else:
        rows = [columns, *zip(*columns.values(), strict=True)]
        path.write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n")
    return path


def assert_reads(examples: Examples, inputs: list[list[float]], labels: list[int]) -> None:
    assert examples.inputs.dtype == torch.float32
    assert examples.inputs.tolist() == inputs
    assert examples.labels.dtype == torch.int64
    assert examples.labels.tolist() == labels


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_table_gives_every_other_column_as_input(tmp_path: Path, suffix: str) -> None:
    table = write(tmp_path / f"table{suffix}", COLUMNS)
    assert_reads(from_table(table, label_column="kind"), [[1, 0.5], [2, 1.5], [3, 2.5]], [0, 1, 0])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_named_columns_come_in_the_named_order(tmp_path: Path, suffix: str) -> None:
    table = write(tmp_path / f"table{suffix}", COLUMNS)
    chosen = from_table(str(table), label_column="a", input_columns=["b"])
    assert_reads(chosen, [[0.5], [1.5], [2.5]], [1, 2, 3])


@pytest.mark.parametrize("labels", [[-1, 1, 1], [0.5, 1.5, 1.5], ["01", "1", "1"]])
def test_labels_that_are_no_class_numbers_are_numbered_in_sorted_order(
    tmp_path: Path, labels: list[object]
) -> None:
    table = write(tmp_path / "table.csv", {"a": [1, 2, 3], "label": labels})
    assert from_table(table, label_column="label").labels.tolist() == [0, 1, 1]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("column", ["label", "c"])
def test_a_column_that_is_not_there_is_named_with_those_that_are(
    tmp_path: Path, suffix: str, column: str
) -> None:
    table = write(tmp_path / f"table{suffix}", COLUMNS)
    with pytest.raises(ValueError, match=f"`{column}` is no column .*; it has a, kind, b"):
        from_table(table, label_column=column if column == "label" else "a", input_columns=["c"])


@pytest.mark.parametrize("cell", ["", "many", "nan", "inf"])
def test_a_cell_that_is_no_finite_number_is_named(tmp_path: Path, cell: str) -> None:
    table = write(tmp_path / "table.csv", {"a": [1, cell, 3], "label": [0, 1, 0]})
    with pytest.raises(DataError, match=rf"`{cell}` in column `a`, example 1: not a finite"):
        from_table(table, label_column="label")


def test_a_missing_parquet_cell_is_named(tmp_path: Path) -> None:
    table = write(tmp_path / "table.parquet", {"a": [1, None, 3], "label": [0, 1, 0]})
    with pytest.raises(DataError, match="in column `a`, example 1"):
        from_table(table, label_column="label")


def test_a_line_with_too_few_cells_is_named(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,label\n1,0\n2\n")
    with pytest.raises(DataError, match="1 cells in line 3, its header has 2"):
        from_table(tmp_path / "table.csv", label_column="label")


def test_a_table_without_rows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,label\n")
    with pytest.raises(DataError, match="no rows below its header"):
        from_table(tmp_path / "table.csv", label_column="label")


def test_a_file_that_is_no_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "table.parquet").write_text("a,label\n")
    with pytest.raises(DataError, match="is not a Parquet file"):
        from_table(tmp_path / "table.parquet", label_column="label")


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"pass a `.csv` or a `.parquet` file"):
        from_table(tmp_path / "table.xlsx", label_column="label")


def test_without_pyarrow_a_parquet_file_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = write(tmp_path / "table.parquet", COLUMNS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="pip install pyarrow"):
        from_table(table, label_column="kind")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_named_pipe_is_not_waited_for(tmp_path: Path, suffix: str) -> None:
    os.mkfifo(tmp_path / f"pipe{suffix}")
    with pytest.raises(DataError, match="it is a named pipe, not a file"):
        from_table(tmp_path / f"pipe{suffix}", label_column="kind")


@pytest.mark.parametrize("content", [b"a,kind\n\xff,1\n", b"a,kind\n" + b"1" * 200_000 + b",1\n"])
def test_a_table_that_is_no_csv_is_refused_in_words(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(DataError, match="cannot be read as a table"):
        from_table(tmp_path / "t.csv", label_column="kind")


def test_class_numbers_beyond_64_bits_are_names(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"a,kind\n1,{10**30}\n2,7\n")
    assert from_table(tmp_path / "t.csv", label_column="kind").labels.tolist() == [0, 1]


def test_a_parquet_file_of_more_rows_than_any_data_set_is_refused_unread(tmp_path: Path) -> None:
    rows = pa.table({"a": pa.nulls(20_000_001, pa.int8()), "kind": pa.nulls(20_000_001, pa.int8())})
    pq.write_table(rows, tmp_path / "t.parquet")
    assert (tmp_path / "t.parquet").stat().st_size < 100_000
    with pytest.raises(UnsafeFileError, match="states 20,000,001 rows"):
        from_table(tmp_path / "t.parquet", label_column="kind")
