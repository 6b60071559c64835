import contextlib
import os
import pickle
import random
import struct
import subprocess
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recollect.datasets.files.restricted_pickle import read_pickle
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


def test_a_place_in_memory_that_was_not_reached_is_refused(tmp_path: Path) -> None:
    # The standard library makes a table up to the place: 2.2 GB for this file of 9 bytes.
    (tmp_path / "p").write_bytes(b"\x80\x02Nr" + struct.pack("<I", 1 << 27) + b".")
    with pytest.raises(UnsafeFileError, match="uses the place 134217728 of its memory first"):
        read_pickle(tmp_path / "p")


@pytest.mark.parametrize(
    "stated",
    [
        b"\x80\x04\x95" + struct.pack("<Q", 1 << 40) + b"N.",  # a frame
        b"\x80\x04\x8e" + struct.pack("<Q", 1 << 40) + b"N.",  # bytes
        b"\x80\x05\x96" + struct.pack("<Q", 1 << 40) + b"N.",  # a bytearray
        b"\x80\x04\x8d" + struct.pack("<Q", 1 << 40) + b"N.",  # text
        b"\x80\x02T" + struct.pack("<i", 1 << 30) + b"N.",  # text of Python 2
        b"\x80\x02\x8b" + struct.pack("<i", 1 << 30) + b"N.",  # an integer
        b"p" + b"9" * 30 + b"\nN.",  # a place
        b"I" + b"9" * 5000 + b"\n.",
        b"",
    ],
)
def test_a_stated_length_beyond_the_file_is_refused(tmp_path: Path, stated: bytes) -> None:
    (tmp_path / "p").write_bytes(stated)
    with pytest.raises(UnsafeFileError, match="cannot be read as a pickle of arrays"):
        read_pickle(tmp_path / "p")


def test_one_text_made_into_many_arrays_is_refused(tmp_path: Path) -> None:
    text = b"X" + struct.pack("<I", 1 << 20) + b"a" * (1 << 20) + b"q\x00"
    encoded = b"c_codecs\nencode\nh\x00X" + struct.pack("<I", 6) + b"latin1\x86R"
    (tmp_path / "p").write_bytes(b"\x80\x02" + text + encoded * 50 + b".")
    with pytest.raises(UnsafeFileError, match="unpacks to many times its size"):
        read_pickle(tmp_path / "p")


def test_tuples_in_tuples_as_a_key_do_not_end_the_process(tmp_path: Path) -> None:
    # Python hashes them by recursion, without a check.
    (tmp_path / "p").write_bytes(b"\x80\x02}N" + b"\x85" * 1_000_000 + b"Ns.")
    with pytest.raises(UnsafeFileError, match="more than 60,000 tuples"):
        read_pickle(tmp_path / "p")


@pytest.mark.parametrize(
    "state",
    [
        (3, "|", None, ("f",), {"f": ("i4", 0)}, 8, 1, 0),
        (3, "|", ("i4", (1 << 40,)), None, None, 1 << 40, 1, 0),
        (3, "?", None, None, None, -1, -1, 0),
    ],
)
def test_the_state_of_a_dtype_sets_its_byte_order_and_nothing_else(
    tmp_path: Path, state: tuple[Any, ...]
) -> None:
    built = pickle.dumps(state, 2)[2:-1]
    name = b"cnumpy\ndtype\nX" + struct.pack("<I", 2) + b"u1\x85R"
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R"
    content = b"(K\x01K\x02\x85" + name + built + b"b\x89C\x02abtb"
    (tmp_path / "p").write_bytes(b"\x80\x03" + array + content + b".")
    if state[1] == "?":
        with pytest.raises(UnsafeFileError, match="no byte order"):
            read_pickle(tmp_path / "p")
    else:
        np.testing.assert_array_equal(read_pickle(tmp_path / "p"), np.frombuffer(b"ab", np.uint8))


def test_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p")
    with pytest.raises(UnsafeFileError, match="it is a named pipe, not a file"):
        read_pickle(tmp_path / "p")


@pytest.mark.parametrize("part", range(4))
def test_a_mutated_pickle_is_read_or_refused_in_the_memory_of_its_file(
    tmp_path: Path, part: int
) -> None:
    content = {"data": np.arange(40, dtype=np.uint8).reshape(4, 10), "labels": [1, 2, 3, 4]}
    whole = [pickle.dumps(content, protocol) for protocol in (2, 3, 4, 5)][part]
    draws = random.Random(part)
    tracemalloc.start()
    for _ in range(300):
        changed = bytearray(whole)
        for _ in range(draws.randint(1, 4)):
            changed[draws.randrange(len(changed))] = draws.randrange(256)
        (tmp_path / "p").write_bytes(changed)
        with contextlib.suppress(UnsafeFileError):
            read_pickle(tmp_path / "p")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 50_000_000
