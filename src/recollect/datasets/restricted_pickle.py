"""Pickles of arrays, read without executing anything they ask for."""

import pickle
from pathlib import Path
from typing import IO, Any

import numpy as np

from recollect.errors import UnsafeFileError

_PLAIN_KINDS = "biufSU"


def read_pickle(path: Path) -> Any:
    """Read a pickle made of dicts, lists, numbers, strings and plain numpy arrays.

    A pickle is a program. This reader knows six names, each replaced by a function of ours that
    builds an array and nothing else; any other name ends the reading.

    Args:
        path: The pickle, of any protocol, from Python 2 or 3.

    Returns:
        The object, with text from Python 2 decoded as Latin-1.

    Raises:
        UnsafeFileError: The pickle asks for anything else, or is damaged.
    """
    with path.open("rb") as stream:
        try:
            return _ArraysOnly(stream, path).load()
        except UnsafeFileError:
            raise
        # A damaged or crafted pickle can fail in as many ways as there are opcodes.
        except Exception as error:
            raise UnsafeFileError(
                f"`{path}` cannot be read as a pickle of arrays ({type(error).__name__}: {error}). "
                "It is damaged or not such a file: get it again from where it came."
            ) from error


class _ArraysOnly(pickle.Unpickler):
    def __init__(self, stream: IO[bytes], path: Path) -> None:
        super().__init__(stream, encoding="latin1")
        self._path = path

    def find_class(self, module: str, name: str, /) -> Any:
        module = module.replace("numpy._core", "numpy.core")
        known = _KNOWN_NAMES.get((module, name))
        if known is None:
            raise UnsafeFileError(
                f"`{self._path}` asks for `{module}.{name}`, which is not needed to hold images; "
                "nothing was run. Do not load this file with anything else; get another copy."
            )
        return known


class _NdarrayMark:
    """Stands for `numpy.ndarray`, so that a pickle cannot call it to claim memory."""


_NDARRAY = _NdarrayMark()


def _empty_array(kind: object, _shape: object, _dtype: object) -> np.ndarray[Any, Any]:
    if kind is not _NDARRAY:
        raise pickle.UnpicklingError("only plain arrays are known")
    # The true shape and bytes follow as state; the stated one could be any size.
    return np.empty((0,), dtype=np.int8)


def _plain_dtype(code: object, *_flags: object) -> np.dtype[Any]:
    if not isinstance(code, str):
        raise pickle.UnpicklingError("a dtype must be named by a string")
    # A copy, because the state that follows (byte order) is set on the object.
    dtype = np.dtype(code, False, True)
    if dtype.kind not in _PLAIN_KINDS:
        raise pickle.UnpicklingError(f"arrays of `{code}` are not plain numbers or text")
    return dtype


def _scalar(dtype: np.dtype[Any], content: bytes | str) -> Any:
    raw = content.encode("latin1") if isinstance(content, str) else content
    return np.frombuffer(raw, dtype=dtype, count=1)[0]


def _bytes_from_text(text: str, encoding: str = "latin1") -> bytes:
    if encoding != "latin1":
        raise pickle.UnpicklingError("only Latin-1 is known")
    return text.encode("latin1")


def _array_from_buffer(
    buffer: bytes | bytearray, dtype: np.dtype[Any], shape: tuple[int, ...], order: str, *_axes: int
) -> np.ndarray[Any, Any]:
    if order not in ("C", "F"):
        raise pickle.UnpicklingError("only C and Fortran order are known")
    flat = np.frombuffer(buffer, dtype=dtype)
    return flat.reshape(shape) if order == "C" else flat.reshape(shape[::-1]).T


_KNOWN_NAMES: dict[tuple[str, str], object] = {
    ("numpy.core.multiarray", "_reconstruct"): _empty_array,
    ("numpy.core.multiarray", "scalar"): _scalar,
    ("numpy.core.numeric", "_frombuffer"): _array_from_buffer,
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy", "dtype"): _plain_dtype,
    ("_codecs", "encode"): _bytes_from_text,
}
