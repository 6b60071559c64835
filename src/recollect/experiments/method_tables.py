"""`[methods.NAME]` of a spec: which method, and its options."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, get_args

from pydantic import ValidationError
from pydantic.errors import PydanticSchemaGenerationError

from recollect.benchmarks import Defaults
from recollect.experiments.method_options import (
    Option,
    checked_option,
    option_defaults,
    option_types,
    required_options,
    settable,
)
from recollect.experiments.nearest import nearest
from recollect.experiments.own_parts import (
    PARTS,
    digest_of,
    option_problems,
    with_own_parts,
)
from recollect.learner.network import Weighs
from recollect.learner.passes import Passes, check_passes
from recollect.methods import METHODS, Method
from recollect.rules import Rule

Problem = tuple[str, str]
_Told = dict[str, str]

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]*")
# What a method's table may say beside the method's own options.
_OWN: Final[Mapping[str, Any]] = {
    "base": str,
    **dict.fromkeys(PARTS, str),
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
        base: Which of `recollect.methods()` it is, or which it changes parts of.
        options: Every option of its storage, retrieval and rule, defaults written out.
        has_memory: Whether it keeps examples at all.
        found: How the options were found.
        learner: Its own learning rate, replay, iterations or passes, where they differ.
        parts: `where` and `sha256` of the parts that come from files of the user.
    """

    name: str
    base: str
    options: dict[str, Option]
    has_memory: bool
    found: str | None = None
    learner: dict[str, Option] = field(default_factory=dict)
    parts: dict[str, dict[str, str]] = field(default_factory=dict)


def read_method(
    name: str, tables: Mapping[str, Any], *, shared: Mapping[str, Any]
) -> tuple[MethodTable | None, list[Problem]]:
    """Check one method's table.

    Args:
        name: The table's name.
        tables: All methods' tables: a method with parts of its own has its base's settings, where
            it does not say otherwise, so that the two differ in these parts alone.
        shared: `[learner]` of the same spec, for rules that involve both.

    Returns:
        The method, None if something is wrong with it, and what is wrong, with paths from the
        table on.
    """
    if not _NAME.fullmatch(name):
        return None, [("", "is no name for a method; use small letters, digits and hyphens.")]
    table: Mapping[str, Any] = tables[name]
    own = {part: str(table[part]) for part in PARTS if part in table}
    base = table.get("base", "er" if own and name not in METHODS else name)
    if not isinstance(base, str) or base not in METHODS:
        return None, [
            (".base" if "base" in table else "", f"{base!r} is no method; {nearest(base, METHODS)}")
        ]
    if name in METHODS and (own or base != name):
        return None, [("", f"{name} is a method of the library; give yours a name of its own.")]
    parts, row, problems = _read_parts(base, own)
    if row is None:
        return None, problems
    try:
        kinds = option_types(row)
        defaults = option_defaults(row)
    except Exception as error:  # annotations of a file of the user's can be anything
        return None, [("", f"has options that cannot be read: {type(error).__name__}: {error}")]
    known = {**_OWN, **kinds}
    said = {**_inherited(base, tables.get(base), own), **table}
    values, told = _checked(said, known)
    # What is inherited is told of the base.
    problems = [(f".{key}", problem) for key, problem in told.items() if key in table]
    options = {key: values[key] for key in kinds if key in values}
    problems += [
        (f".{key}", f"is missing; {kind.__name__} needs it.")
        for key, kind in required_options(row).items()
        if key not in said
    ]
    learner = {key: values[key] for key in _OF_THE_LEARNER if key in values}
    if options.keys() >= required_options(row).keys():
        problems += _impossible(row, {**defaults, **options}, learner, shared)
    if problems:
        return None, problems
    filled, has_memory = {**defaults, **options}, row.storage is not None
    return MethodTable(name, base, filled, has_memory, values.get("found"), learner, parts), []


def _checked(said: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[dict[str, Any], _Told]:
    """Check what a table says by its types; return what is right, and what is wrong by key."""
    values: dict[str, Any] = {}
    told: _Told = {}
    for key, value in said.items():
        if key not in known:
            told[key] = f"unknown key; {nearest(key, known)}"
            continue
        try:
            values[key] = checked_option(known[key], value)
        except ValidationError as error:
            told[key] = f"is {value!r}; it should be {_wanted(error)}."
        except PydanticSchemaGenerationError:
            told[key] = f"is of type {known[key]}, which no spec can say."
    return values, told


def _read_parts(
    base: str, own: Mapping[str, str]
) -> tuple[dict[str, dict[str, str]], Method | None, list[Problem]]:
    """Find the parts a table takes from files, and the row they make of its base."""
    parts: dict[str, dict[str, str]] = {}
    problems = []
    for part, where in own.items():
        if METHODS[base].storage is None and part != "rule":
            problems.append((f".{part}", f"{base} has no memory; choose another base."))
            continue
        try:
            parts[part] = {"where": where, "sha256": digest_of(where)}
            with_own_parts(base, {part: parts[part]})
        except ValueError as error:
            problems.append((f".{part}", str(error)))
    if problems:
        return parts, None, problems
    row = with_own_parts(base, parts)
    problems = [(f".{part}", told) for part, told in option_problems(row, own).items()]
    return parts, None if problems else row, problems


def _inherited(base: str, table: object, own: Mapping[str, str]) -> dict[str, Any]:
    """Return what the base's table says of what a method with parts of its own has kept of it."""
    if not own or not isinstance(table, Mapping):
        return {}
    row = METHODS[base]
    kept = {"storage": row.storage, "retrieval": row.retrieval, "rule": row.rule}
    of_parts = [key for part, kind in kept.items() if part not in own for key in settable(kind)]
    return {key: table[key] for key in (*_OF_THE_LEARNER, *of_parts) if key in table}


def _impossible(
    row: Method, options: Mapping[str, Any], own: Mapping[str, Any], shared: Mapping[str, Any]
) -> list[Problem]:
    """Try each option alone, so that one bad value does not hide another; then all together."""
    learner = {**shared, **own}
    replay = learner["replay"] if _is_count(learner.get("replay")) else Defaults().replay
    problems = []
    always = {key: options[key] for key in required_options(row)}
    for key, value in options.items():
        if complaint := _complaint(row, {**always, key: value}, replay):
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
    complaint = _complaint(row, options, replay, passes if passes in get_args(Passes) else None)
    return [("", complaint)] if complaint else []


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _complaint(
    row: Method, options: Mapping[str, Any], replay: int, passes: str | None = None
) -> str | None:
    """Build the method's parts with these options and return what they say against them."""
    try:
        for kind in (row.storage, row.retrieval, row.rule):
            own = {key: options[key] for key in settable(kind) if key in options}
            if kind is row.retrieval and kind is not None:
                own["replay"] = replay
            part = None if kind is None else kind(**own)
            if isinstance(part, Rule) and passes is not None:
                check_passes(passes, part)
    except Exception as error:  # a part of the user's may complain as it likes
        ours = isinstance(error, ValueError | TypeError)
        return str(error) if ours else f"{type(error).__name__}: {error}"
    return None


def _wanted(error: ValidationError) -> str:
    wanted = (
        str(found["msg"]).removeprefix("Input should be ").replace("a valid ", "a ")
        for found in error.errors()
    )
    return " or ".join(dict.fromkeys(wanted))
