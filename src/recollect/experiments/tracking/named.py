"""Trackers by name: `csv`, `tensorboard`, or a class in a file of the user's."""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from recollect.errors import ConfigError
from recollect.experiments.specs.own_parts import digest_of, load_part
from recollect.suggestions import nearest
from recollect.trackers import Tracker

# The class, and the package that it needs.
_OURS: Final = {"csv": ("CSV", "csv"), "tensorboard": ("TensorBoard", "tensorboard")}


def named_trackers(names: Sequence[str]) -> dict[str, type[Tracker]]:
    """Return classes of trackers, by the name of the folder that each gets.

    Args:
        names: `"csv"`, `"tensorboard"` or `"path/to/file.py:Class"`.

    Raises:
        ConfigError: A name is none of these, names no tracker, or needs what is not installed.
    """
    found: dict[str, type[Tracker]] = {}
    problems = []
    for name in dict.fromkeys(names):
        try:
            folder, kind = _named(name)
            if folder in found:
                raise ValueError(f"is {name!r}, whose folder {folder!r} another takes; rename one.")
            found[folder] = kind
        except ValueError as error:
            problems.append(("--track", str(error)))
    if problems:
        raise ConfigError("the command", problems)
    return found


def _named(name: str) -> tuple[str, type[Tracker]]:
    if ":" in name or name.endswith(".py"):
        kind: type[Tracker] = load_part("tracker", name, digest_of(name))
        return Path(name.rpartition(":")[0]).stem, kind
    if name not in _OURS:
        near = nearest(name, _OURS)
        raise ValueError(f"is {name!r}; {near} One of your own is path/to/file.py:Class.")
    kind_name, package = _OURS[name]
    if find_spec(package) is None:
        raise ValueError(f"is {name!r}, which is not installed. Run `pip install {package}`.")
    ours: type[Tracker] = getattr(import_module("recollect.trackers"), kind_name)
    return name, ours
