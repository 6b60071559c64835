import os
import pickle
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recollect.datasets.restricted_pickle import read_pickle
from recollect.errors import UnsafeFileError


def dumped(path: Path, content: object, protocol: int = 4) -> Path:
    path.write_bytes(pickle.dumps(content, protocol))
    return path


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("dtype", ["uint8", "<i4", ">i8", "float32", "U3", "S3"])
def test_plain_arrays_come_back_equal_whatever_the_protocol(
    tmp_path: Path, protocol: int, dtype: str
) -> None:
    array = np.arange(12).reshape(3, 4).astype(dtype)
    content = {"image_data": array, "turned": array.T, "class_dict": {"n": [0]}, "one": array[0, 1]}
    read = read_pickle(dumped(tmp_path / "p", content, protocol))
    np.testing.assert_array_equal(read["image_data"], array)
    np.testing.assert_array_equal(read["turned"], array.T)
    # numpy itself turns foreign byte orders into the machine's own on reading.
    assert read["image_data"].dtype == pickle.loads(pickle.dumps(array, protocol)).dtype
    assert read["class_dict"] == {"n": [0]}
    assert read["one"] == array[0, 1]


class _Calls:
    """Pickles as a call, which is how every hostile pickle works."""

    def __init__(self, function: Callable[..., Any], *arguments: object) -> None:
        self._call = (function, arguments)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[object, ...]]:
        return self._call


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_that_runs_a_command_is_refused_and_nothing_runs(
    tmp_path: Path, protocol: int
) -> None:
    victim = tmp_path / "ran"
    hostile = dumped(tmp_path / "p", [1, _Calls(os.system, f"touch {victim}")], protocol)
    with pytest.raises(UnsafeFileError, match=r"asks for `(posix|nt)\.system`.*nothing was run"):
        read_pickle(hostile)
    assert not victim.exists()
    pickle.loads(hostile.read_bytes())
    assert victim.exists()  # the file truly is hostile: the ordinary reader runs it


@pytest.mark.parametrize(
    "call",
    [
        _Calls(eval, "1"),
        _Calls(getattr, "x", "upper"),
        _Calls(open, "/dev/null"),
        _Calls(subprocess.check_output, ["true"]),
        _Calls(np.load, "x"),
        _Calls(np.frombuffer, b"x"),
    ],
)
def test_every_name_that_is_not_needed_for_arrays_is_refused(tmp_path: Path, call: _Calls) -> None:
    with pytest.raises(UnsafeFileError, match="asks for"):
        read_pickle(dumped(tmp_path / "p", call))


def test_a_pickle_cannot_claim_memory_it_does_not_bring(tmp_path: Path) -> None:
    with pytest.raises(UnsafeFileError, match="not callable"):
        read_pickle(dumped(tmp_path / "p", _Calls(np.ndarray, (1 << 50,))))


def test_arrays_of_objects_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsafeFileError, match="not plain numbers"):
        read_pickle(dumped(tmp_path / "p", np.array([{}, {}], dtype=object)))


def test_an_attribute_path_through_a_known_module_is_refused(tmp_path: Path) -> None:
    # Protocol 4 lets a name be a path: `numpy` + `ndarray.__class__.__base__`.
    name = b"ndarray.__class__"
    crafted = b"\x80\x04\x8c\x05numpy\x8c" + struct.pack("B", len(name)) + name + b"\x93."
    (tmp_path / "p").write_bytes(crafted)
    with pytest.raises(UnsafeFileError, match="asks for"):
        read_pickle(tmp_path / "p")


def test_a_persistent_reference_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(b"Pwhatever\n.")
    with pytest.raises(UnsafeFileError, match="cannot be read as a pickle of arrays"):
        read_pickle(tmp_path / "p")


@pytest.mark.parametrize("cut", [1, 30])
def test_a_truncated_pickle_is_refused(tmp_path: Path, cut: int) -> None:
    path = dumped(tmp_path / "p", {"data": np.zeros(100, dtype=np.uint8)})
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(UnsafeFileError, match="cannot be read"):
        read_pickle(path)


def test_text_from_python_2_is_latin_1(tmp_path: Path) -> None:
    # What Python 2 wrote for {'data': 'ab'}: byte strings without a b.
    (tmp_path / "p").write_bytes(b"\x80\x02}U\x04dataU\x02abs.")
    assert read_pickle(tmp_path / "p") == {"data": "ab"}
