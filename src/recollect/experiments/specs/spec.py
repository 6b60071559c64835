"""What to run, as a TOML file says it: read, overridden and checked as a whole."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from recollect.atomic_files import require_file
from recollect.benchmarks.protocols import RECIPES
from recollect.choices import Passes, Weighs
from recollect.errors import ConfigError
from recollect.experiments.specs.configs import config_root
from recollect.experiments.specs.method_tables import MethodTable, read_method
from recollect.suggestions import nearest, shown

Problem = tuple[str, str]

_OF_PARTS: Final = ("methods.", "learner.")
GIVEN: Final = "given with --set"
_TOO_DEEP: Final = "nests tables or lists too deeply; a spec needs three levels."

# What a protocol decides: a spec written for one protocol does not bind another in these.
_OF_THE_PROTOCOL: Final = (
    ("stream", "batch_size"),
    ("stream", "examples_per_segment"),
    ("stream", "validation_per_segment"),
    ("model", "hidden"),
    ("optimizer", "lr"),
    ("learner", "replay"),
    ("learner", "iterations"),
)
_OF_THE_PROTOCOL_IN_METHODS: Final = ("lr", "replay", "iterations")

# What a command says in another place, and writes there again into its records: given twice, the
# recorded command would not lead to its record.
_NOT_WITH_SET: Final = {
    "benchmark": "name the benchmark as the argument, or in a spec of your own.",
    "protocol": "choose the protocol with --protocol, which brings its settings.",
}


MOST: Final = 1_000_000_000  # slots, examples, steps: no machine has more
_MAX_BYTES: Final = 1_000_000
_MAX_DEPTH: Final = 10  # tables in tables, or lists in lists

_Count = Annotated[int, Field(gt=0, le=MOST)]


class _Table(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class StreamTable(_Table):
    """`[stream]`: what arrives. Keys left out are the protocol's."""

    batch_size: _Count | None = None
    num_segments: _Count | None = None
    examples_per_segment: _Count | None = None
    validation_per_segment: Annotated[int, Field(ge=0, le=MOST)] | None = None
    data: str | None = None


class ModelTable(_Table):
    """`[model]`: what learns. `"usual"` is the benchmark's own choice.

    `norm` is of the reduced ResNet18: `"batch"` as published, the default, or `"group"`.
    """

    name: Literal["usual", "mlp", "reduced-resnet18"] = "usual"
    hidden: list[_Count] | None = None
    norm: Literal["batch", "group"] | None = None


class OptimizerTable(_Table):
    """`[optimizer]`: how it steps. Without `lr`, the protocol's."""

    name: Literal["sgd", "adam"] = "sgd"
    lr: Annotated[float, Field(gt=0)] | None = None
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.0
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    found: str | None = None


class LearnerTable(_Table):
    """`[learner]`: how it learns, whatever the method."""

    replay: _Count | None = None
    iterations: _Count | None = None
    passes: Passes = "joint"
    weighs: Weighs = "losses"


class EvaluationTable(_Table):
    """`[evaluation]`: what is counted, and how often."""

    on: Literal["test", "validation"] = "test"
    points: _Count = 20
    examples: _Count = 1000


class _File(_Table):
    benchmark: str
    protocol: str = "paper"
    memory: list[_Count] | None = None
    seeds: _Count = 10
    compare: list[str] | None = None
    stream: StreamTable = StreamTable()
    model: ModelTable = ModelTable()
    optimizer: OptimizerTable = OptimizerTable()
    learner: LearnerTable = LearnerTable()
    evaluation: EvaluationTable = EvaluationTable()
    methods: dict[str, dict[str, Any]]


class Spec(_Table):
    """A checked spec: one benchmark, several methods, one or more memory sizes.

    Attributes:
        benchmark: Name of the benchmark.
        protocol: Whose version of the benchmark, such as `"paper"`.
        memory: Memory sizes to run, in slots; the protocol's if None.
        seeds: How many seeds are run by default.
        compare: Methods that are run by default.
        stream: What arrives.
        model: What learns.
        optimizer: How it steps.
        learner: How it learns, whatever the method.
        evaluation: What is counted, and how often.
        methods: The methods by the names this spec gives them.
    """

    benchmark: str
    protocol: str
    memory: tuple[int, ...] | None
    seeds: int
    compare: tuple[str, ...]
    stream: StreamTable
    model: ModelTable
    optimizer: OptimizerTable
    learner: LearnerTable
    evaluation: EvaluationTable
    methods: dict[str, MethodTable]


def load_spec(
    path: str | Path, *, overrides: Sequence[str] = (), protocol: str | None = None
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
        raise ConfigError(str(path), [("", _TOO_DEEP)]) from error
    # TOMLDecodeError is one; so is what Python says of an integer of 5,000 digits.
    except ValueError as error:
        raise ConfigError(str(path), [("", f"is not TOML: {error}.")]) from error
    if _is_deeper(raw, _MAX_DEPTH):
        raise ConfigError(str(path), [("", _TOO_DEEP)])
    if protocol is not None and protocol != raw.get("protocol", "paper"):
        _change_protocol(raw, protocol)
        # The package's specs were tuned for their protocol; what users say of a method is its own.
        if path.resolve().is_relative_to(config_root().resolve()):
            _free_methods(raw.get("methods"), protocol)
    problems = apply_overrides(raw, overrides)
    # What the package's own specs say of methods is known to be possible.
    is_ours = path.resolve().is_relative_to(config_root().resolve())
    is_tested = is_ours and not any(change.startswith(_OF_PARTS) for change in overrides)
    return check_spec(raw, source=str(path), problems=problems, ask_parts=not is_tested)


def check_spec(
    raw: Mapping[str, Any],
    *,
    source: str,
    problems: Iterable[Problem] = (),
    ask_parts: bool = True,
) -> Spec:
    """Turn nested tables into a spec.

    Names, types and ranges are checked first, without importing torch; where they are right, the
    methods' parts are built, which checks their options.

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
    file: _File | None = None
    try:
        file = _File.model_validate(dict(raw))
    except ValidationError as error:
        found += [_told(problem) for problem in error.errors()]
    found += _benchmark_problems(raw)
    methods, of_methods = _read_methods(raw)
    found += of_methods
    found += _compare_problems(raw, methods)
    found += _model_problems(raw)
    if found or file is None:
        raise ConfigError(source, found)
    if ask_parts or len(methods) < len(file.methods):
        methods, found = _ask_parts(raw)
    if found:
        raise ConfigError(source, found)
    return Spec(
        benchmark=file.benchmark,
        protocol=file.protocol,
        memory=None if file.memory is None else tuple(dict.fromkeys(file.memory)),
        seeds=file.seeds,
        compare=tuple(file.compare or file.methods),
        stream=file.stream,
        model=file.model,
        optimizer=file.optimizer,
        learner=file.learner,
        evaluation=file.evaluation,
        methods=methods,
    )


def apply_overrides(raw: dict[str, Any], overrides: Iterable[str]) -> list[Problem]:
    """Write `path=value` pairs into nested tables; return what could not be written."""
    problems = []
    for override in overrides:
        path, equals, text = override.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(keys) or len(keys) > _MAX_DEPTH:
            problems.append(("--set", f"is {shown(override)}; write it as path.to.key=value."))
            continue
        if path.strip() in _NOT_WITH_SET:
            problems.append(("--set", f"is {shown(override)}; {_NOT_WITH_SET[path.strip()]}"))
            continue
        table = raw
        for key in keys[:-1]:
            inner = table.setdefault(key, {})
            if not isinstance(inner, dict):
                problems.append(
                    ("--set", f"is {shown(override)}, but `{key[:80]}` is not a table.")
                )
                break
            table = inner
        else:
            value = _toml_value(text.strip())
            if _is_deeper(value, _MAX_DEPTH):
                problems.append(("--set", f"is {shown(override)}; its value {_TOO_DEEP}"))
                continue
            table[keys[-1]] = value
            # How the old value was found says nothing about the new one.
            if "found" in table and keys[-1] != "found":
                table["found"] = GIVEN
    return problems


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # as of a file; the rules will say what is wrong with it
        return text


def _is_deeper(value: object, depth: int) -> bool:
    """Say whether tables or lists are nested more deeply, without going all the way."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return bool(inner) and (depth == 0 or any(_is_deeper(entry, depth - 1) for entry in inner))


def _change_protocol(raw: dict[str, Any], protocol: str) -> None:
    raw["protocol"] = protocol
    raw.pop("memory", None)
    for table, key in _OF_THE_PROTOCOL:
        if isinstance(raw.get(table), dict):
            raw[table].pop(key, None)
    if isinstance(raw.get("optimizer"), dict) and "found" in raw["optimizer"]:
        raw["optimizer"]["found"] = f"default of protocol {protocol}"


def _free_methods(tables: object, protocol: str) -> None:
    """Drop what methods' tables say of the protocol's settings, and that it was found."""
    methods = tables.values() if isinstance(tables, dict) else ()
    for table in methods:
        dropped = [key for key in _OF_THE_PROTOCOL_IN_METHODS if key in table]
        for key in dropped:
            del table[key]
        if dropped and "found" in table:
            has_options = table.keys() - {"base", "found"}  # found together with what is dropped
            told = f"{table['found']}; but {' and '.join(dropped)} of protocol {protocol}"
            table["found"] = told if has_options else f"default of protocol {protocol}"


def _told(error: Any) -> Problem:
    """Say one of pydantic's findings in our words."""
    path = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return path, f"unknown key; {nearest(str(error['loc'][-1]), _keys_at(error['loc'][:-1]))}"
    if error["type"] == "missing":
        return path, "is missing; a spec needs it."
    rule = error["msg"].removeprefix("Input ").replace("a valid ", "a ")
    return path, f"is {shown(error['input'])}; it {rule}."


def _keys_at(location: tuple[str | int, ...]) -> list[str]:
    fields = _File.model_fields
    if not location:
        return list(fields)
    table = fields[str(location[0])].annotation
    return list(table.model_fields) if isinstance(table, type) and issubclass(table, _Table) else []


def _benchmark_problems(raw: Mapping[str, Any]) -> list[Problem]:
    name, protocol = raw.get("benchmark"), raw.get("protocol", "paper")
    names = sorted({known for known, _ in RECIPES})
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


def _model_problems(raw: Mapping[str, Any]) -> list[Problem]:
    model, optimizer = raw.get("model"), raw.get("optimizer")
    problems = []
    if isinstance(model, Mapping) and "hidden" in model and model.get("name") != "mlp":
        problems.append(("model.hidden", 'only an MLP has hidden widths; set name = "mlp".'))
    if isinstance(model, Mapping) and "norm" in model and model.get("name") != "reduced-resnet18":
        problems.append(
            ("model.norm", 'only the ResNet normalises; set name = "reduced-resnet18".')
        )
    if isinstance(optimizer, Mapping) and optimizer.get("name") == "adam":
        momentum = optimizer.get("momentum")
        if momentum:
            problems.append(("optimizer.momentum", f"is {momentum!r}; only sgd takes it."))
    return problems
