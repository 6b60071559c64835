"""Parts that a spec takes from a file of yours: `storage = "idea.py:Newest"`.

Complaints are ValueErrors in words that go behind the key of a spec.
"""

import contextlib
import dataclasses
import hashlib
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from recollect.atomic_files import require_file
from recollect.choices import LEARNER, LEARNER_CODE
from recollect.experiments.specs.method_options import settable
from recollect.methods import METHODS, Method
from recollect.objectives import Objective
from recollect.predictors import Predictor
from recollect.retrieval import Retrieval
from recollect.rules import Rule
from recollect.storage import Storage
from recollect.suggestions import nearest
from recollect.trackers import Tracker

_MAX_BYTES: Final = 10_000_000
_ENDS: Final = (".py", "/__init__.py")
_KINDS: Final[Mapping[str, type]] = {
    "storage": Storage,
    "retrieval": Retrieval,
    "rule": Rule,
    "objective": Objective,
    "predictor": Predictor,
    "tracker": Tracker,
}
# What a table, or `recollect.method`, says of the learner and not of its parts.
_TAKEN: Final = frozenset(
    {*_KINDS, "base", "found", "lr", "name", "model", "optimizer", "capacity", "seed"}
    | {*LEARNER, *LEARNER_CODE, "measure_all", "memory_device"}
)


def digest_of(where: str) -> str:
    """Return the SHA-256 of the file that `where`, such as `idea.py:Newest`, speaks of.

    It stands in the hash of a cell, so that runs of an idea and of what it was yesterday are never
    taken for the same. Files that this one imports are not covered.

    Raises:
        ValueError: `where` names no file.
    """
    return hashlib.sha256(_source(where)).hexdigest()


def load_part(part: str, where: str, digest: str) -> type:
    """Return the class that `where` names.

    Args:
        part: Which part it has to be, of `recollect.choices.PARTS`, or "tracker".
        where: Such as `idea.py:Newest`.
        digest: What the file has to be.

    Raises:
        ValueError: It is not there, or no such part.
    """
    module = _checked_module(where, digest)
    file, _, name = where.rpartition(":")
    wanted = _KINDS[part]
    kind = getattr(module, name, None)
    if not isinstance(kind, type):
        own = [key for key, value in vars(module).items() if _is_part(value, wanted)]
        raise ValueError(f"is {where!r}, but {file} has no class {name}; {nearest(name, own)}")
    if not issubclass(kind, wanted):
        raise ValueError(f"is {where!r}, which is no {part}; derive it from {wanted.__name__}.")
    if missing := getattr(kind, "__abstractmethods__", None):
        raise ValueError(f"is {where!r}, which lacks {', '.join(sorted(missing))}; write it.")
    return kind


def load_called(where: str, digest: str) -> Callable[..., Any]:
    """Return the function or class that `where` names, such as `net.py:Net`, whatever it makes.

    Args:
        where: Such as `net.py:Net`.
        digest: What the file has to be.

    Raises:
        ValueError: It is not there, or cannot be called.
    """
    module = _checked_module(where, digest)
    file, _, name = where.rpartition(":")
    called = vars(module).get(name)
    if not callable(called):
        own = [key for key, value in vars(module).items() if callable(value) and key[0] != "_"]
        told = f"{nearest(name, own)}" if own else "it has none."
        raise ValueError(f"is {where!r}, but {file} has no function or class {name}; {told}")
    return called


def _checked_module(where: str, digest: str) -> ModuleType:
    """Run the file that `where` speaks of, if it is the one with this digest."""
    source = _source(where)
    if hashlib.sha256(source).hexdigest() != digest:
        raise ValueError(f"the file of {where!r} was changed meanwhile; run the command again.")
    path = Path(where.rpartition(":")[0]).expanduser().resolve()
    return _module(path, source, f"own_{path.stem}_{digest[:8]}")


def files_of(where: str, digest: str) -> dict[str, bytes]:
    """Return what a part needs to be built elsewhere: its file, and what it imports beside it.

    Args:
        where: Such as `idea.py:Newest`.
        digest: What the file has to be.

    Returns:
        The files by their paths in the folder of the first, which is the part's own.

    Raises:
        ValueError: It is not there, was changed meanwhile or cannot be imported.
    """
    path = Path(where.rpartition(":")[0]).expanduser().resolve()
    module, source = _checked_module(where, digest), _source(where)
    beside = (file for file in _imported_by[module.__name__] if file.is_file())
    return {path.name: source} | {
        file.relative_to(path.parent).as_posix(): file.read_bytes() for file in sorted(beside)
    }


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


def option_problems(row: Method, own: Collection[str]) -> dict[str, str]:
    """Say which options of parts from files cannot be told from something else of that name.

    Args:
        row: The method with these parts.
        own: Which parts they are.
    """
    parts = row.kinds
    holders = Counter(key for kind in parts.values() for key in settable(kind))
    problems = {}
    for part in own:
        for key in settable(parts[part]):
            if key in _TAKEN:
                problems[part] = f"has a field `{key}`, which means another thing here; rename it."
            elif holders[key] > 1 and key != "replay":
                problems[part] = f"has a field `{key}`, and so has another part; rename one."
    return problems


def _source(where: str) -> bytes:
    file, colon, name = where.rpartition(":")
    if not colon or not file.endswith(".py") or not name.isidentifier():
        raise ValueError(f"is {where!r}; write it as path/to/file.py:Name.")
    path = Path(file).expanduser().absolute()
    try:
        require_file(path, max_bytes=_MAX_BYTES)
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"is {where!r}, but {path} cannot be read ({error.strerror}).") from error


def _is_part(value: object, wanted: type) -> bool:
    return isinstance(value, type) and issubclass(value, wanted) and not inspect.isabstract(value)


# What files of the user have imported from their own folders.
_neighbours: set[str] = set()
# The files of those, by the module of the part that imported them.
_imported_by: dict[str, tuple[Path, ...]] = {}


@cache  # one class object a process, whoever asks
def _module(file: Path, source: bytes, name: str) -> ModuleType:
    """Run the very bytes that were hashed, which a compiled copy beside the file need not be."""
    module = ModuleType(name)
    module.__file__ = str(file)
    sys.modules[name] = module  # dataclasses and type hints look there
    # As for `python file.py`: it may import its neighbours. Those of another file do not count,
    # though they may be called the same.
    for neighbour in _neighbours:
        sys.modules.pop(neighbour, None)
    before = set(sys.modules)
    sys.path.insert(0, str(file.parent))
    try:
        with contextlib.redirect_stdout(sys.stderr):  # our own output may be read by a machine
            exec(compile(source, str(file), "exec"), vars(module))
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        told = f"{type(error).__name__}: {error}"
        raise ValueError(f"cannot be imported from {file.name} ({told}).") from error
    finally:
        sys.path.remove(str(file.parent))
        files = {
            new: Path(str(getattr(sys.modules[new], "__file__", None)))
            for new in set(sys.modules) - before
        }
        _neighbours.update(new for new in files if files[new].is_relative_to(file.parent))
        # An environment, or our source, may lie in the same folder: its modules are called
        # otherwise than by their paths in it.
        _imported_by[name] = tuple(
            path
            for new, path in files.items()
            if path in (file.parent / f"{new.replace('.', '/')}{end}" for end in _ENDS)
        )
    return module
