"""`[methods.NAME]` of a spec: which method, and its options.

Read by names and types alone, without importing what a method is made of. `part_checks` then asks
the parts themselves.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError

from recollect.choices import LEARNER, PARTS, ROWS, Option, Value, options_of
from recollect.experiments.specs.named.options import in_words, read_augmentations
from recollect.suggestions import nearest, shown

Problem = tuple[str, str]
_Told = dict[str, str]

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9+-]{,63}")  # it begins the names of files
# What a method's table may say beside the method's own options.
_OWN: Final[Mapping[str, Any]] = {
    "base": str,
    **dict.fromkeys(PARTS, str),
    "found": str,
    "lr": float,
    "replay": int,
    **{name: option.kind for name, option in LEARNER.items()},
    "augment": Any,
}

MOST_OPTION: Final = 1_000_000_000

OF_THE_LEARNER: Final[tuple[str, ...]] = ("lr", "replay", *LEARNER, "augment")


@dataclass(frozen=True)
class MethodTable:
    """A method as a spec names it.

    Attributes:
        name: What the spec calls it, and what tables will.
        base: Which of `recollect.methods()` it is, or which it changes parts of.
        options: Every option of its parts, defaults written out but for options of later.
        has_memory: Whether it keeps examples at all.
        found: How the options were found.
        learner: Its own learning rate, replay, iterations, passes or augmentations, where they
            differ.
        parts: `where` and `sha256` of the parts that come from files of the user.
    """

    name: str
    base: str
    options: dict[str, Value]
    has_memory: bool
    found: str | None = None
    learner: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Known:
    """The options that a method's parts have.

    Attributes:
        kinds: Their types.
        defaults: What they are when nobody says.
        required: Those without a default, and whose each is.
        has_memory: Whether the method keeps examples at all.
        options: More about them, where they are those of the library's parts.
        later: Those that are not written out at their default.
    """

    kinds: Mapping[str, Any]
    defaults: Mapping[str, Any]
    required: Mapping[str, str]
    has_memory: bool
    options: Mapping[str, Option] = field(default_factory=dict)
    later: frozenset[str] = frozenset()


def read_method(name: str, tables: Mapping[str, Any]) -> tuple[MethodTable | None, list[Problem]]:
    """Check one method's table, as far as names and types go.

    Args:
        name: The table's name.
        tables: All methods' tables.

    Returns:
        The method, None if something is wrong with it or if it has parts of the user's, which
        names and types do not tell; and what is wrong, with paths from the table on.
    """
    base, problems = base_of(name, tables[name])
    if base is None or own_parts_of(tables[name]):
        return None, problems
    options = options_of(base)
    known = Known(
        kinds={key: option.kind for key, option in options.items()},
        defaults={key: option.default for key, option in options.items()},
        required={},
        has_memory=ROWS[base].storage is not None,
        options=options,
        later=frozenset(key for key, option in options.items() if option.later),
    )
    return fill(name, base, tables[name], known)


def own_parts_of(table: Mapping[str, Any]) -> dict[str, str]:
    """Return the parts that a table takes from files of the user."""
    return {part: str(table[part]) for part in PARTS if part in table}


def base_of(name: str, table: Mapping[str, Any]) -> tuple[str | None, list[Problem]]:
    """Return which of the library's methods a table begins with, or what is wrong with its name."""
    if not _NAME.fullmatch(name):
        rule = "is no name for a method; use small letters, digits, hyphens and +, at most 64."
        return None, [("", rule)]
    own = own_parts_of(table)
    base = table.get("base", "er" if own and name not in ROWS else name)
    if not isinstance(base, str) or base not in ROWS:
        path = ".base" if "base" in table else ""
        return None, [(path, f"{shown(base)} is no method; {nearest(base, ROWS)}")]
    if name in ROWS and (own or base != name):
        return None, [("", f"{name} is a method of the library; give yours a name of its own.")]
    return base, []


def fill(
    name: str,
    base: str,
    table: Mapping[str, Any],
    known: Known,
    *,
    inherited: Mapping[str, Any] | None = None,
    parts: Mapping[str, dict[str, str]] | None = None,
) -> tuple[MethodTable | None, list[Problem]]:
    """Check what a table says by the types of its options, and write the defaults out.

    Args:
        name: The table's name.
        base: Which of the library's methods it begins with.
        table: What it says.
        known: What it can say of options.
        inherited: What holds where it says nothing, before the defaults do.
        parts: Parts that it takes from files of the user.
    """
    said = {**(inherited or {}), **table}
    values, told = _checked(said, {**_OWN, **known.kinds})
    for key, value in values.items():
        if key in known.options and (rule := known.options[key].complaint(value)):
            told[key] = f"is {shown(value)}; it should be {rule}."
    # What is inherited is told of the base.
    problems = [(f".{key}", problem) for key, problem in told.items() if key in table]
    problems += [
        (f".{key}", f"is missing; {whose} needs it.")
        for key, whose in known.required.items()
        if key not in said
    ]
    options = {**known.defaults, **{key: values[key] for key in known.kinds if key in values}}
    for key in known.later:
        if options[key] == known.defaults[key]:
            del options[key]
    learner = {key: values[key] for key in OF_THE_LEARNER if key in values}
    problems += _impossible_of_the_learner(learner)
    if "augment" in learner:
        learner["augment"], of_changes = read_augmentations(learner["augment"])
        problems += [(f".augment{path}", message) for path, message in of_changes]
    if problems:
        return None, problems
    found = values.get("found")
    method = MethodTable(name, base, options, known.has_memory, found, learner, dict(parts or {}))
    return method, []


def checked_option(kind: Any, value: object) -> Any:
    """Return a value as its type has it: 1 is 1.0 where a float is meant.

    Raises:
        ValidationError: It is no such value.
        PydanticSchemaGenerationError: The type is nothing that a spec could say.
    """
    strict = ConfigDict(strict=True, allow_inf_nan=False)
    return TypeAdapter(kind, config=strict).validate_python(value)


def _checked(said: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[dict[str, Any], _Told]:
    """Check what a table says by its types; return what is right, and what is wrong by key."""
    values: dict[str, Any] = {}
    told: _Told = {}
    for key, value in said.items():
        if key not in known:
            told[key] = f"unknown key; {nearest(key, known)}"
            continue
        if isinstance(value, int) and abs(value) > MOST_OPTION:
            told[key] = f"is {shown(value)}; it should be at most {MOST_OPTION:,}."
            continue
        try:
            values[key] = checked_option(known[key], value)
        except ValidationError as error:
            told[key] = f"is {shown(value)}; it should be {in_words(error)}."
        except PydanticSchemaGenerationError:
            told[key] = f"is of type {known[key]}, which no spec can say."
    return values, told


def _impossible_of_the_learner(own: Mapping[str, Any]) -> list[Problem]:
    problems = [
        (f".{key}", f"is {own[key]!r}; it should be a whole number from 1.")
        for key in own
        if _OWN[key] is int and not is_count(own[key])
    ]
    if "lr" in own and own["lr"] <= 0:
        problems.append((".lr", f"is {own['lr']!r}; it should be greater than 0."))
    return problems


def is_count(value: object) -> bool:
    """Say whether a value is a whole number from 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
