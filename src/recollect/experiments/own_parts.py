"""Parts that a spec takes from a file of yours: `storage = "idea.py:Newest"`."""

import contextlib
import dataclasses
import hashlib
import inspect
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from recollect.experiments.nearest import nearest
from recollect.methods import METHODS, Method
from recollect.retrieval import Retrieval
from recollect.rules import Rule
from recollect.storage import Storage

PARTS: Final[Mapping[str, type]] = {"storage": Storage, "retrieval": Retrieval, "rule": Rule}


def digest_of(where: str) -> str:
    """Return the SHA-256 of the file that `where`, such as `idea.py:Newest`, speaks of.

    It stands in the hash of a cell, so that runs of an idea and of what it was yesterday are never
    taken for the same. Files that this one imports are not covered.

    Raises:
        ValueError: `where` names no file, in words that go behind the key of a spec.
    """
    return hashlib.sha256(_source(where)).hexdigest()


def load_part(part: str, where: str, digest: str) -> type:
    """Return the class that `where` names.

    Args:
        part: Which part it has to be, "storage", "retrieval" or "rule".
        where: Such as `idea.py:Newest`.
        digest: What the file has to be.

    Raises:
        ValueError: It is not there, or no such part, in words that go behind the key of a spec.
    """
    source = _source(where)
    if hashlib.sha256(source).hexdigest() != digest:
        raise ValueError(f"is {where!r}, whose file was changed meanwhile; run the command again.")
    file, _, name = where.rpartition(":")
    module = _module(Path(file).resolve(), source, f"own_{Path(file).stem}_{digest[:8]}")
    wanted = PARTS[part]
    kind = getattr(module, name, None)
    if not isinstance(kind, type):
        own = [key for key, value in vars(module).items() if _is_part(value, wanted)]
        raise ValueError(f"is {where!r}, but {file} has no class {name}; {nearest(name, own)}")
    if not issubclass(kind, wanted):
        raise ValueError(f"is {where!r}, which is no {part}; derive it from {wanted.__name__}.")
    if missing := getattr(kind, "__abstractmethods__", None):
        raise ValueError(f"is {where!r}, which lacks {', '.join(sorted(missing))}; write it.")
    return kind


def with_own_parts(base: str, parts: Mapping[str, Mapping[str, str]]) -> Method:
    """Return the row of a method with some of its parts taken from files.

    Args:
        base: Which of `recollect.methods()`.
        parts: `where` and `sha256` of each part that is not the method's own.
    """
    own: dict[str, Any] = {
        part: load_part(part, found["where"], found["sha256"]) for part, found in parts.items()
    }
    return dataclasses.replace(METHODS[base], **own)


def _source(where: str) -> bytes:
    file, colon, name = where.rpartition(":")
    if not colon or not file.endswith(".py") or not name.isidentifier():
        raise ValueError(f"is {where!r}; write it as path/to/file.py:Class.")
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ValueError(f"is {where!r}, but {file} cannot be read ({error.strerror}).") from error


def _is_part(value: object, wanted: type) -> bool:
    return isinstance(value, type) and issubclass(value, wanted) and not inspect.isabstract(value)


@cache  # one class object a process, whoever asks
def _module(file: Path, source: bytes, name: str) -> ModuleType:
    """Run the very bytes that were hashed, which a compiled copy beside the file need not be."""
    module = ModuleType(name)
    module.__file__ = str(file)
    sys.modules[name] = module  # dataclasses and type hints look there
    sys.path.insert(0, str(file.parent))  # as for `python file.py`: it may import its neighbours
    try:
        with contextlib.redirect_stdout(sys.stderr):  # our own output may be read by a machine
            exec(compile(source, str(file), "exec"), vars(module))
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        told = f"{type(error).__name__}: {error}"
        raise ValueError(f"cannot be imported from {file.name} ({told}).") from error
    finally:
        sys.path.remove(str(file.parent))
    return module
