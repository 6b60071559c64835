"""What to run, as a TOML file says it: read, overridden and checked as a whole."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from recollect.atomic_files import require_file
from recollect.benchmarks.protocols import RECIPES
from recollect.choices import ROWS
from recollect.errors import ConfigError
from recollect.experiments.specs.configs import config_root
from recollect.experiments.specs.data.reading import (
    OWN,
    OwnData,
    is_own,
    read_data,
    stream_problems,
)
from recollect.experiments.specs.method_tables import MethodTable, read_method
from recollect.experiments.specs.named.reading import Named, read_named
from recollect.experiments.specs.overrides import (
    GIVEN,
    MAX_DEPTH,
    TOO_DEEP,
    apply_overrides,
    change_protocol,
    free_methods,
    is_deeper,
)
from recollect.experiments.specs.tables import (
    MOST,
    EvaluationTable,
    File,
    LearnerTable,
    ModelTable,
    OptimizerTable,
    SchedulerTable,
    StreamTable,
    in_our_words,
)
from recollect.suggestions import nearest, shown

__all__ = ["GIVEN", "MOST", "Spec", "apply_overrides", "check_spec", "load_spec"]

Problem = tuple[str, str]
_AnyTable = TypeVar("_AnyTable", bound=BaseModel)

PAPER: Final = "paper"  # the protocol of a spec that names none
_OF_PARTS: Final = ("methods.", "learner.")
_MAX_BYTES: Final = 1_000_000


@dataclass(frozen=True)
class Spec:
    """A checked spec: one benchmark, several methods, one or more memory sizes.

    Attributes:
        benchmark: Name of the benchmark.
        protocol: Whose version of the benchmark, such as `"paper"`.
        memory: Memory sizes to run, in slots; the protocol's if None.
        seeds: How many seeds are run by default.
        compare: Methods that are run by default.
        stream: What arrives.
        optimizer: How it steps, as the file says it.
        learner: How it learns, whatever the method.
        evaluation: What is counted, and how often.
        methods: The methods by the names this spec gives them.
        named: Model, optimizer, schedule and augmentations, with their options checked.
        said: The tables as file and command say them, `[tune]` among them.
        data: Data of the user's; None for a benchmark of the library.
    """

    benchmark: str
    protocol: str
    memory: tuple[int, ...] | None
    seeds: int
    compare: tuple[str, ...]
    stream: StreamTable
    optimizer: OptimizerTable
    learner: LearnerTable
    evaluation: EvaluationTable
    methods: dict[str, MethodTable]
    named: Named
    said: Mapping[str, Any]
    data: OwnData | None = None


def load_spec(
    path: str | Path,
    *,
    overrides: Sequence[str] = (),
    protocol: str | None = None,
    methods: Iterable[str] = (),
) -> Spec:
    """Read a spec file, change it, and check all of it.

    Args:
        path: A TOML file.
        overrides: `"optimizer.lr=0.1"` and the like; the value is read as TOML, or as a string if
            it is none.
        protocol: Another protocol than the file's. What protocols differ in (batch size, examples
            per segment, widths of an MLP, learning rate, replay, iterations, memory) is then that
            protocol's own, unless `overrides`, or a method's table in a spec of the user's, say
            otherwise.
        methods: Names that are asked for. A method of the library that the file has no table of
            gets an empty one: its defaults, and what the spec says for all.

    Raises:
        ConfigError: The file is missing or not TOML, or breaks rules; every problem is listed.
    """
    path = Path(path)
    try:
        require_file(path, max_bytes=_MAX_BYTES)
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(str(path), [("", f"cannot be read ({error.strerror}).")]) from error
    except RecursionError as error:
        raise ConfigError(str(path), [("", TOO_DEEP)]) from error
    # TOMLDecodeError is one; so is what Python says of an integer of 5,000 digits.
    except ValueError as error:
        raise ConfigError(str(path), [("", f"is not TOML: {error}.")]) from error
    if is_deeper(raw, MAX_DEPTH):
        raise ConfigError(str(path), [("", TOO_DEEP)])
    usual = OWN if is_own(raw) else PAPER
    if protocol is not None and protocol != raw.get("protocol", usual):
        change_protocol(raw, protocol)
        # The package's specs were tuned for their protocol; what users say of a method is its own.
        if path.resolve().is_relative_to(config_root().resolve()):
            free_methods(raw.get("methods"), protocol)
    problems = apply_overrides(raw, overrides)
    added = _with_tables(raw, methods)
    # What the package's own specs say of methods is known to be possible.
    is_ours = path.resolve().is_relative_to(config_root().resolve())
    is_tested = is_ours and not any(change.startswith(_OF_PARTS) for change in (*overrides, *added))
    return check_spec(raw, source=str(path), problems=problems, ask_parts=not is_tested)


def _with_tables(raw: Mapping[str, Any], methods: Iterable[str]) -> list[str]:
    """Give methods of the library that have no table an empty one; return where these are."""
    tables = raw.get("methods")
    if not isinstance(tables, dict):
        return []
    added = [name for name in methods if name in ROWS and name not in tables]
    tables |= {name: {} for name in added}
    return [f"methods.{name}" for name in added]


def check_spec(
    raw: Mapping[str, Any],
    *,
    source: str,
    problems: Iterable[Problem] = (),
    ask_parts: bool = True,
) -> Spec:
    """Turn nested tables into a spec.

    Names, types and ranges are checked first, without importing torch unless an optimizer or a
    schedule is named that only torch knows. Where all is right, the methods' parts are built, which
    checks their options.

    Args:
        raw: What `tomllib` made of a file.
        source: How to call it in an error.
        problems: What is wrong already.
        ask_parts: Whether the parts are built.

    Raises:
        ConfigError: Rules are broken; every problem is listed. Where two settings do not go
            together, only if each is right by itself.
    """
    found = [*problems]
    file: File | None = None
    try:
        file = File.model_validate(dict(raw))
    except ValidationError as error:
        found += [in_our_words(problem) for problem in error.errors()]
    data, of_data = _read_data(raw)
    found += of_data
    methods, of_methods = _read_methods(raw)
    found += of_methods
    found += _compare_problems(raw, methods)
    named, of_named = _read_named(raw)
    found += of_named
    if found or file is None:
        raise ConfigError(source, found)
    if ask_parts or len(methods) < len(file.methods):
        methods, found = _ask_parts(raw)
    if found:
        raise ConfigError(source, found)
    return Spec(
        benchmark=str(file.benchmark) if data is None else data.name,
        protocol=file.protocol or (PAPER if data is None else OWN),
        memory=None if file.memory is None else tuple(dict.fromkeys(file.memory)),
        seeds=file.seeds,
        compare=tuple(file.compare or file.methods),
        stream=file.stream,
        optimizer=file.optimizer,
        learner=file.learner,
        evaluation=file.evaluation,
        methods=methods,
        named=named,
        said=raw,
        data=data,
    )


def _read_data(raw: Mapping[str, Any]) -> tuple[OwnData | None, list[Problem]]:
    """Read where the data comes from; None for a benchmark of the library."""
    if not is_own(raw):
        return None, _benchmark_problems(raw)
    data, problems = read_data(raw)
    return data, problems + stream_problems(raw)


def _read_named(raw: Mapping[str, Any]) -> tuple[Named, list[Problem]]:
    """Read what the tables name that are right by themselves, so that no mistake hides another."""
    scheduler = _table(SchedulerTable, raw.get("scheduler")) if "scheduler" in raw else None
    learner = raw.get("learner")
    return read_named(
        model=_table(ModelTable, raw.get("model", {})) or ModelTable(),
        optimizer=_table(OptimizerTable, raw.get("optimizer", {})) or OptimizerTable(),
        scheduler=scheduler,
        augment=learner.get("augment") if isinstance(learner, Mapping) else None,
    )


def _table(kind: type[_AnyTable], said: object) -> _AnyTable | None:
    try:
        return kind.model_validate(said)
    except ValidationError:
        return None  # reported with the file


def _benchmark_problems(raw: Mapping[str, Any]) -> list[Problem]:
    name, protocol = raw.get("benchmark"), raw.get("protocol", PAPER)
    names = sorted({known for known, _ in RECIPES})
    if name is None:
        return [("benchmark", "is missing; a spec needs it, or a [data] table.")]
    if not isinstance(name, str) or not isinstance(protocol, str):
        return []  # reported as a wrong type already
    if name not in names:
        return [("benchmark", f"is {shown(name)}; {nearest(name, names)}")]
    protocols = [source for known, source in RECIPES if known == name]
    if protocol not in protocols:
        known = ", ".join(protocols)
        return [("protocol", f"is {shown(protocol)}; {name} is defined for {known}.")]
    return []


def _read_methods(raw: Mapping[str, Any]) -> tuple[dict[str, MethodTable], list[Problem]]:
    tables = raw.get("methods")
    if not isinstance(tables, Mapping):
        return {}, []
    if not tables:
        return {}, [("methods", "is empty; add a table such as [methods.er].")]
    methods, problems = {}, []
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            continue  # reported as a wrong type already
        method, of_this = read_method(name, tables)
        problems += [(f"methods.{name}{path}", message) for path, message in of_this]
        if method is not None:
            methods[name] = method
    return methods, problems


def _ask_parts(raw: Mapping[str, Any]) -> tuple[dict[str, MethodTable], list[Problem]]:
    """Read methods again, with the parts that they are made of."""
    # Torch takes its time to import; until here nothing needed it.
    from recollect.experiments.specs.part_checks import read_with_parts

    methods, problems = {}, []
    for name in raw["methods"]:
        method, of_this = read_with_parts(name, raw["methods"], shared=raw.get("learner", {}))
        problems += [(f"methods.{name}{path}", message) for path, message in of_this]
        if method is not None:
            methods[name] = method
    return methods, problems


def _compare_problems(raw: Mapping[str, Any], methods: Mapping[str, MethodTable]) -> list[Problem]:
    tables, compare = raw.get("methods"), raw.get("compare")
    if not isinstance(compare, list) or not isinstance(tables, Mapping):
        return []
    return [
        (f"compare.{position}", f"is {name!r}, which has no table; {nearest(name, tables)}")
        for position, name in enumerate(compare)
        if isinstance(name, str) and name not in tables and name not in methods
    ]
