"""One TensorBoard event file per run: one record per step."""

import os
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from typing_extensions import override

from recollect.errors import MissingExtraError
from recollect.trackers.tracker import Tracker

# TensorBoard reads what has this in its name. One file, whoever continues it.
_NAME: Final = "events.out.tfevents.0000000000.recollect"
_HEADER: Final = struct.Struct("<Q4x")  # length of a record, its checksum
_FOOTER: Final = struct.Struct("<I")  # checksum of the content


class TensorBoard(Tracker):
    """Keeps an event file, for `tensorboard --logdir` over the folders of all runs.

    All numbers of a step are one record, so a step is there whole or not at all. A record that a
    kill left half-written is removed when the file is opened again. Needs the extra `tensorboard`,
    and neither TensorFlow nor `torch.utils.tensorboard`.
    """

    @override
    def __init__(self, folder: str | Path, run: Mapping[str, Any] | None = None) -> None:
        try:
            from tensorboard.compat.proto import event_pb2  # type: ignore[import-untyped]
            from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped]
        except ImportError as error:
            raise MissingExtraError(
                "`tensorboard` is not installed. Run `pip install tensorboard`."
            ) from error
        super().__init__(folder, run)
        self._event = event_pb2.Event
        path = self.folder / _NAME
        path.touch()
        self._last_step = self._cut_to_whole_records(path)
        self._records = RecordWriter(path.open("ab"))
        if not path.stat().st_size:
            self._write(self._event(wall_time=time.time(), file_version="brain.Event:2"))

    @property
    @override
    def last_step(self) -> int:
        return self._last_step

    @override
    def keep(self, step: int, numbers: Mapping[str, float]) -> None:
        event = self._event(wall_time=time.time(), step=step)
        for name, value in numbers.items():
            event.summary.value.add(tag=name, simple_value=value)
        self._write(event)
        self._last_step = step

    @override
    def close(self) -> None:
        self._records.close()

    def _write(self, event: Any) -> None:
        self._records.write(event.SerializeToString())
        self._records.flush()

    def _cut_to_whole_records(self, path: Path) -> int:
        """Cut off what follows the last whole record, and return the step of that one."""
        last, whole = 0, 0
        with path.open("r+b") as file:
            while len(header := file.read(_HEADER.size)) == _HEADER.size:
                (length,) = _HEADER.unpack(header)
                if length > os.fstat(file.fileno()).st_size:  # no length, but bytes of a power cut
                    break
                content, footer = file.read(length), file.read(_FOOTER.size)
                if len(footer) < _FOOTER.size or not _is_intact(content, footer):
                    break
                last, whole = int(self._event.FromString(content).step), file.tell()
            file.truncate(whole)
        return last


def _is_intact(content: bytes, footer: bytes) -> bool:
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c  # type: ignore[import-untyped]

    return bool(content) and masked_crc32c(content) == _FOOTER.unpack(footer)[0]
