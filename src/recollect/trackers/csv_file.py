"""One CSV file per run: a row per step, a column per number."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from typing_extensions import override

from recollect.atomic_files import write_text
from recollect.trackers.tracker import Tracker

_NAME: Final = "steps.csv"


class CSV(Tracker):
    """Keeps `steps.csv`: `step`, then a column for each number, empty where there was none.

    A row is written at once and flushed. One that a kill or a power cut left half-written is
    removed when the file is opened again. A number with a new name gets a column of its own, for
    which the file is written anew, whole.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> tracker = CSV(folder)
        >>> tracker.keep(1, {"loss": 0.5})
        >>> tracker.keep(2, {"loss": 0.25, "accuracy": 1.0})
        >>> tracker.close()
        >>> print((Path(folder) / "steps.csv").read_text(), end="")
        step,loss,accuracy
        1,0.5,
        2,0.25,1.0
    """

    @override
    def __init__(self, folder: str | Path, run: Mapping[str, Any] | None = None) -> None:
        super().__init__(folder, run)
        self._path = self.folder / _NAME
        self._path.touch()
        self._names, rows = _whole_rows(self._path)
        if not self._path.stat().st_size:
            write_text(self._path, _line(["step"]))
        self._last_step = int(rows[-1][0]) if rows else 0
        self._file = self._path.open("a", encoding="utf-8", newline="")

    @property
    @override
    def last_step(self) -> int:
        return self._last_step

    @override
    def keep(self, step: int, numbers: Mapping[str, float]) -> None:
        if new := [name for name in numbers if name not in self._names]:
            self._add_columns(new)
        values = (numbers.get(name) for name in self._names)
        row = [str(step), *("" if value is None else repr(float(value)) for value in values)]
        self._file.write(_line(row))
        self._file.flush()
        self._last_step = step

    @override
    def close(self) -> None:
        self._file.close()

    def _add_columns(self, names: list[str]) -> None:
        self._file.close()
        _, rows = _whole_rows(self._path)
        self._names += names
        wide = [row + [""] * (1 + len(self._names) - len(row)) for row in rows]
        write_text(self._path, "".join(map(_line, [["step", *self._names], *wide])))
        self._file = self._path.open("a", encoding="utf-8", newline="")


def _whole_rows(path: Path) -> tuple[list[str], list[list[str]]]:
    """Return names and rows, and cut off the file what follows its last whole row."""
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        with path.open("r+b") as file:
            file.truncate(len(whole))
    heading, *rows = list(csv.reader(io.StringIO(whole.decode("utf-8")))) or [["step"]]
    return heading[1:], rows


def _line(row: list[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(row)
    return text.getvalue()
