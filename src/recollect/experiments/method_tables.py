"""`[methods.NAME]` of a spec: which method, and its options."""

import dataclasses
import re
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, get_args

from pydantic import ConfigDict, TypeAdapter, ValidationError

from recollect.benchmarks import Defaults
from recollect.experiments.nearest import nearest
from recollect.learner.network import Weighs
from recollect.learner.passes import Passes, check_passes
from recollect.methods import METHODS, Method
from recollect.rules import Rule

Problem = tuple[str, str]
Option = str | int | float | bool | None

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]*")
# What a method's table may say beside the method's own options.
_OWN: Final[Mapping[str, Any]] = {
    "base": str,
    "found": str,
    "lr": float,
    "replay": int,
    "iterations": int,
    "passes": Passes,
    "weighs": Weighs,
}

_OF_THE_LEARNER: Final[tuple[str, ...]] = ("lr", "replay", "iterations", "passes", "weighs")


@dataclass(frozen=True)
class MethodTable:
    """A method as a spec names it.

    Attributes:
        name: What the spec calls it, and what tables will.
        base: Which of `recollect.methods()` it is.
        options: Every option of its storage, retrieval and rule, defaults written out.
        found: How the options were found.
        learner: Its own learning rate, replay, iterations or passes, where they differ.
    """

    name: str
    base: str
    options: dict[str, Option]
    found: str | None = None
    learner: dict[str, Option] = field(default_factory=dict)

    @property
    def has_memory(self) -> bool:
        """Whether it keeps examples at all."""
        return METHODS[self.base].storage is not None


def read_method(
    name: str, table: Mapping[str, Any], *, shared: Mapping[str, Any]
) -> tuple[MethodTable | None, list[Problem]]:
    """Check one method's table.

    Args:
        name: The table's name.
        table: Its content.
        shared: `[learner]` of the same spec, for rules that involve both.

    Returns:
        The method, None if something is wrong with it, and what is wrong, with paths from the
        table on.
    """
    if not _NAME.fullmatch(name):
        return None, [("", "is no name for a method; use small letters, digits and hyphens.")]
    base = table.get("base", name)
    if not isinstance(base, str) or base not in METHODS:
        return None, [
            (".base" if "base" in table else "", f"{base!r} is no method; {nearest(base, METHODS)}")
        ]
    kinds = _option_types(METHODS[base])
    known = {**_OWN, **kinds}
    problems = []
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            problems.append((f".{key}", f"unknown key; {nearest(key, known)}"))
            continue
        try:
            values[key] = TypeAdapter(
                known[key], config=ConfigDict(strict=True, allow_inf_nan=False)
            ).validate_python(value)
        except ValidationError as error:
            problems.append((f".{key}", f"is {value!r}; it should be {_wanted(error)}."))
    options = {key: values[key] for key in kinds if key in values}
    learner = {key: values[key] for key in _OF_THE_LEARNER if key in values}
    problems += _impossible(base, options, learner, shared)
    if problems:
        return None, problems
    filled = {**_defaults(METHODS[base]), **options}
    return MethodTable(name, base, filled, values.get("found"), learner), []


def _impossible(
    base: str, options: Mapping[str, Any], own: Mapping[str, Any], shared: Mapping[str, Any]
) -> list[Problem]:
    """Try each option alone, so that one bad value does not hide another; then all together."""
    learner = {**shared, **own}
    replay = learner["replay"] if _is_count(learner.get("replay")) else Defaults().replay
    problems = []
    for key, value in options.items():
        if complaint := _complaint(base, {key: value}, replay):
            problems.append((f".{key}", complaint))
    problems += [
        (f".{key}", f"is {own[key]!r}; it should be a whole number from 1.")
        for key in ("replay", "iterations")
        if key in own and not _is_count(own[key])
    ]
    if "lr" in own and own["lr"] <= 0:
        problems.append((".lr", f"is {own['lr']!r}; it should be greater than 0."))
    if problems:
        return problems
    passes = learner.get("passes")
    complaint = _complaint(base, options, replay, passes if passes in get_args(Passes) else None)
    return [("", complaint)] if complaint else []


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _complaint(
    base: str, options: Mapping[str, Any], replay: int, passes: str | None = None
) -> str | None:
    """Build the method's parts with these options and return what they say against them."""
    row = METHODS[base]
    try:
        for kind in (row.storage, row.retrieval, row.rule):
            own = {part.name: options[part.name] for part in _fields(kind) if part.name in options}
            if kind is row.retrieval and kind is not None:
                own["replay"] = replay
            part = None if kind is None else kind(**own)
            if isinstance(part, Rule) and passes is not None:
                check_passes(passes, part)
    except (ValueError, TypeError) as error:
        return str(error)
    return None


def _option_types(row: Method) -> dict[str, Any]:
    return {
        option.name: typing.get_type_hints(kind)[option.name]
        for kind, option in _option_fields(row)
    }


def _defaults(row: Method) -> dict[str, Any]:
    return {option.name: option.default for _, option in _option_fields(row)}


def _option_fields(row: Method) -> Iterator[tuple[type, "dataclasses.Field[Any]"]]:
    for kind in (row.storage, row.retrieval, row.rule):
        if kind is not None:
            yield from ((kind, part) for part in _fields(kind) if part.name != "replay")


def _fields(kind: type | None) -> tuple["dataclasses.Field[Any]", ...]:
    if kind is None or not dataclasses.is_dataclass(kind):
        return ()
    return dataclasses.fields(kind)


def _wanted(error: ValidationError) -> str:
    wanted = (
        str(found["msg"]).removeprefix("Input should be ").removeprefix("a valid ")
        for found in error.errors()
    )
    return " or ".join(dict.fromkeys(wanted))
