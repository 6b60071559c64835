"""Pickles of arrays, read without executing anything they name, in bounded memory."""

import mmap
import pickle
import pickletools
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from recollect.atomic_files import require_file
from recollect.errors import UnsafeFileError

_PLAIN_KINDS = "biufSU"
_BYTE_ORDERS = "<>|="
# Python compares tuples in tuples by recursion in C; from some hundred thousand on it crashes.
_MOST_TUPLES = 60_000
# A text from Python 2 is turned into bytes, which are copied into the array.
_COPIES = 4
_SPARE_BYTES = 1 << 20
_MEMO = ("PUT", "BINPUT", "LONG_BINPUT")
_TUPLES = ("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3")


def read_pickle(path: Path) -> Any:
    """Read a pickle made of dicts, lists, numbers, strings and plain numpy arrays.

    A pickle is a program. This reader knows six names. It replaces each by a function of ours that
    builds an array and nothing else, and stops at any other name. The program is checked before it
    is run, so that it cannot claim memory for more than it contains.

    Args:
        path: The pickle, of any protocol, from Python 2 or 3.

    Returns:
        The object, with text from Python 2 decoded as Latin-1.

    Raises:
        UnsafeFileError: The pickle asks for anything else, or is damaged.
    """
    try:
        require_file(path)
        _look_through(path)
        with path.open("rb") as stream:
            return _ArraysOnly(stream, path).load()
    except UnsafeFileError:
        raise
    # A damaged or crafted pickle can fail in as many ways as there are opcodes.
    except Exception as error:
        raise UnsafeFileError(
            f"`{path}` cannot be read as a pickle of arrays ({type(error).__name__}: {error}). "
            "It is damaged or not such a file: get it again from where it came."
        ) from error


def _look_through(path: Path) -> None:
    """Refuse a pickle whose stated numbers would cost more than the file has bytes.

    Texts and frames that are longer than the file are refused by `genops` itself.
    """
    num_tuples = 0
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as all_:
        # genops asks for `read` and `readline`, which a map of the file has; its types say more.
        operations = pickletools.genops(cast("IO[bytes]", all_))
        for index, (opcode, argument, _position) in enumerate(operations):
            num_tuples += opcode.name in _TUPLES
            if num_tuples > _MOST_TUPLES:
                raise pickle.UnpicklingError(f"it has more than {_MOST_TUPLES:,} tuples")
            # Places are numbered as they are used; a table up to this number will be made.
            if opcode.name in _MEMO and not 0 <= int(argument or 0) <= index:
                raise pickle.UnpicklingError(f"it uses the place {argument} of its memory first")
            if opcode.name == "FRAME" and int(argument or 0) > len(all_):
                raise pickle.UnpicklingError(f"it has a frame of {argument} bytes")


class _ArraysOnly(pickle.Unpickler):
    def __init__(self, stream: IO[bytes], path: Path) -> None:
        super().__init__(stream, encoding="latin1")
        self._path = path
        self._budget = _Budget(_COPIES * path.stat().st_size + _SPARE_BYTES)

    def find_class(self, module: str, name: str, /) -> Any:
        known: dict[tuple[str, str], object] = {
            ("numpy.core.multiarray", "_reconstruct"): self._empty_array,
            ("numpy.core.multiarray", "scalar"): _scalar,
            ("numpy.core.numeric", "_frombuffer"): _array_from_buffer,
            ("numpy", "ndarray"): _NDARRAY,
            ("numpy", "dtype"): _PlainDtype,
            ("_codecs", "encode"): self._bytes_from_text,
        }
        found = known.get((module.replace("numpy._core", "numpy.core"), name))
        if found is None:
            raise UnsafeFileError(
                f"`{self._path}` asks for `{module}.{name}`, which is not needed to hold images; "
                "nothing was run. Do not load this file with anything else; get another copy."
            )
        return found

    def _empty_array(self, kind: object, _shape: object, _dtype: object) -> "_Array":
        if kind is not _NDARRAY:
            raise pickle.UnpicklingError("only plain arrays are known")
        # The true shape and bytes follow as state; the stated one could be any size.
        array = np.empty((0,), dtype=np.int8).view(_Array)
        array.budget = self._budget
        return array

    def _bytes_from_text(self, text: str, encoding: str = "latin1") -> bytes:
        if encoding != "latin1":
            raise pickle.UnpicklingError("only Latin-1 is known")
        self._budget.take(len(text))
        return text.encode("latin1")


class _Budget:
    """Bytes that a pickle may still make of those that it brings: it can use one text often."""

    def __init__(self, num_bytes: int) -> None:
        self._left = num_bytes

    def take(self, num_bytes: int) -> None:
        self._left -= num_bytes
        if self._left < 0:
            raise pickle.UnpicklingError("it unpacks to many times its size")


class _NdarrayMark:
    """Stands for `numpy.ndarray`, so that a pickle cannot call it to claim memory."""


_NDARRAY = _NdarrayMark()


class _Array(np.ndarray[Any, Any]):
    """An array whose content comes after it, within a budget."""

    budget: _Budget

    def __setstate__(self, state: tuple[Any, ...], /) -> None:
        *rest, dtype, is_fortran, content = state
        if not isinstance(content, bytes | str):
            raise pickle.UnpicklingError("only arrays of plain numbers or text are known")
        self.budget.take(len(content))
        raw = content.encode("latin1") if isinstance(content, str) else content
        super().__setstate__((*rest, _plain(dtype), is_fortran, raw))


class _PlainDtype:
    """Stands for a dtype of numbers or text; its state may set the byte order and nothing else."""

    def __init__(self, code: object, *_flags: object) -> None:
        if not isinstance(code, str):
            raise pickle.UnpicklingError("a dtype must be named by a string")
        self.dtype: np.dtype[Any] = np.dtype(code)
        if self.dtype.kind not in _PLAIN_KINDS:
            raise pickle.UnpicklingError(f"arrays of `{code}` are not plain numbers or text")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        order = state[1]
        if order not in _BYTE_ORDERS:
            raise pickle.UnpicklingError(f"`{order}` is no byte order")
        if order in "<>":
            self.dtype = self.dtype.newbyteorder(order)


def _plain(dtype: object) -> np.dtype[Any]:
    if not isinstance(dtype, _PlainDtype):
        raise pickle.UnpicklingError("an array needs a dtype of plain numbers or text")
    return dtype.dtype


def _scalar(dtype: object, content: bytes | str) -> Any:
    raw = content.encode("latin1") if isinstance(content, str) else content
    return np.frombuffer(raw, dtype=_plain(dtype), count=1)[0]


def _array_from_buffer(
    buffer: bytes | bytearray, dtype: object, shape: tuple[int, ...], order: str, *_axes: int
) -> np.ndarray[Any, Any]:
    if order not in ("C", "F"):
        raise pickle.UnpicklingError("only C and Fortran order are known")
    flat = np.frombuffer(buffer, dtype=_plain(dtype))
    return flat.reshape(shape) if order == "C" else flat.reshape(shape[::-1]).T
