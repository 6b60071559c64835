"""Read where a spec's data comes from: a benchmark's name, a `[data]` table, or a function."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from recollect.benchmarks.protocols import RECIPES
from recollect.experiments.specs.data.table import read_table
from recollect.suggestions import shown

Problem = tuple[str, str]
Settings = dict[str, Any]

#: The protocol of data that no paper has defined.
OWN: Final = "own"
#: What a function of the user's is given by us.
GIVEN: Final = ("seed",)

_NAMES: Final = sorted({name for name, _ in RECIPES})


@dataclass(frozen=True)
class OwnData:
    """Data of the user's, checked.

    Attributes:
        name: What tables call the benchmark.
        settings: What is read and how it is cut; or the options of a function.
        parts: Where the function is, and its file's SHA-256; nothing without one.
    """

    name: str
    settings: Settings
    parts: dict[str, dict[str, str]] = field(default_factory=dict)


def is_own(raw: Mapping[str, Any]) -> bool:
    """Say whether a spec brings its own data."""
    return "data" in raw or _is_function(raw.get("benchmark"))


def read_data(raw: Mapping[str, Any]) -> tuple[OwnData | None, list[Problem]]:
    """Check what a spec says of its data, as far as that needs no example to be read.

    Args:
        raw: The whole spec. It `is_own`.

    Returns:
        The data, None if something is wrong with it, and what is wrong with its TOML paths.
    """
    benchmark = raw.get("benchmark")
    if _is_function(benchmark):
        return _read_function(str(benchmark), raw.get("data", {}))
    problems: list[Problem] = []
    if benchmark is not None:
        problems.append(("benchmark", f"is {shown(benchmark)}, and [data] is given; leave one."))
    table, of_table = read_table(raw["data"])
    problems += _at_data(of_table)
    if table is None:
        return None, problems
    name = table.name or _name_of(table.where)
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,63}", name):
        rule = "use small letters, digits and hyphens, at most 64."
        problems.append(("data.name", f"is {shown(name)}; {rule}"))
    if name in _NAMES:
        problems.append(("data.name", f"is {name!r}, a benchmark of the library; take another."))
    # Reading files takes numpy and pyarrow; without [data] nobody waits for them.
    from recollect.experiments.specs.data.settings import settings_of

    settings, of_files = settings_of(table)
    problems += _at_data(of_files)
    return (None, problems) if problems else (OwnData(name, settings), [])


def stream_problems(raw: Mapping[str, Any]) -> list[Problem]:
    """Say which keys of the spec do not go with data of its own."""
    problems = []
    if raw.get("protocol", OWN) != OWN:
        told = f"is {shown(raw['protocol'])}; data of your own has no other than {OWN!r}."
        problems.append(("protocol", told))
    stream, evaluation = raw.get("stream", {}), raw.get("evaluation", {})
    if not isinstance(stream, Mapping) or not isinstance(evaluation, Mapping):
        return problems
    is_validated = evaluation.get("on") == "validation"
    if is_validated and "data" in raw and not stream.get("validation_per_segment"):
        told = 'is missing; with on = "validation" it says how many examples are held out.'
        problems.append(("stream.validation_per_segment", told))
    if "data" in stream:
        problems.append(("stream.data", "is for the library's benchmarks; use [data]."))
    if _is_function(raw.get("benchmark")):
        told = "is decided by the function that makes the benchmark; give it an option for that."
        keys = ("num_segments", "examples_per_segment", "validation_per_segment")
        problems += [(f"stream.{key}", told) for key in keys if key in stream]
    return problems


def _read_function(where: str, options: object) -> tuple[OwnData | None, list[Problem]]:
    from recollect.experiments.specs.named.signatures import read_by_signature
    from recollect.experiments.specs.own_parts import digest_of, load_called

    if not isinstance(options, Mapping):
        return None, [("data", f"is {shown(options)}; it should be a table.")]
    try:
        digest = digest_of(where)
        called = load_called(where, digest)
    except ValueError as error:
        return None, [("benchmark", str(error))]
    file, _, function = where.rpartition(":")
    settings, of_options = read_by_signature(called, options, name=function, given=GIVEN)
    if of_options:
        return None, _at_data(of_options)
    name = _name_of(f"{Path(file).stem}-{function}")
    return OwnData(name, settings, {"benchmark": {"where": where, "sha256": digest}}), []


def _is_function(benchmark: object) -> bool:
    return isinstance(benchmark, str) and ".py" in benchmark


def _name_of(where: str) -> str:
    """Name a benchmark after a folder, a file or a set."""
    path = Path(where)
    name = f"{path.parent.name}-{path.stem}" if path.stem in ("train", "data") else path.stem
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:64] or OWN


def _at_data(problems: list[Problem]) -> list[Problem]:
    return [(f"data.{key}" if key else "data", told) for key, told in problems]
