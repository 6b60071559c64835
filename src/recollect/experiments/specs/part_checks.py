"""Checks of a method's options by its parts, which are built for that."""

from collections.abc import Mapping
from typing import Any, get_args

from recollect.benchmarks import Defaults
from recollect.choices import Passes
from recollect.experiments.specs.method_options import (
    later_options,
    option_defaults,
    option_types,
    required_options,
    settable,
)
from recollect.experiments.specs.method_tables import (
    OF_THE_LEARNER,
    Known,
    MethodTable,
    Problem,
    base_of,
    fill,
    is_count,
    own_parts_of,
    read_method,
)
from recollect.experiments.specs.own_parts import digest_of, option_problems, with_own_parts
from recollect.learner.checks import check_fit
from recollect.methods import METHODS, Method
from recollect.network.passes import check_passes


def read_with_parts(
    name: str, tables: Mapping[str, Any], *, shared: Mapping[str, Any]
) -> tuple[MethodTable | None, list[Problem]]:
    """Check one method's table, also by building its parts.

    Args:
        name: The table's name.
        tables: All methods' tables: a method with parts of its own has its base's settings, where
            it does not say otherwise, so that the two differ in these parts alone.
        shared: `[learner]` of the same spec, for rules that involve both.

    Returns:
        The method, None if something is wrong with it, and what is wrong, with paths from the
        table on.
    """
    own = own_parts_of(tables[name])
    if not own:
        method, problems = read_method(name, tables)
        row: Method | None = None if method is None else METHODS[method.base]
    else:
        row, method, problems = _read_own(name, tables, own)
    if method is None or row is None:
        return None, problems
    problems = _impossible(row, method.options, method.learner, shared)
    return (None, problems) if problems else (method, [])


def _read_own(
    name: str, tables: Mapping[str, Any], own: Mapping[str, str]
) -> tuple[Method | None, MethodTable | None, list[Problem]]:
    """Read the table of a method with parts from files of the user."""
    base, problems = base_of(name, tables[name])
    if base is None:
        return None, None, problems
    parts, row, problems = _read_parts(base, own)
    if row is None:
        return None, None, problems
    try:
        known = Known(
            kinds=option_types(row),
            defaults=option_defaults(row),
            required={key: kind.__name__ for key, kind in required_options(row).items()},
            has_memory=row.storage is not None,
            later=later_options(row),
        )
    except Exception as error:  # annotations of a file of the user's can be anything
        told = f"has options that cannot be read: {type(error).__name__}: {error}"
        return None, None, [("", told)]
    inherited = _inherited(base, tables.get(base), own)
    return row, *fill(name, base, tables[name], known, inherited=inherited, parts=parts)


def _read_parts(
    base: str, own: Mapping[str, str]
) -> tuple[dict[str, dict[str, str]], Method | None, list[Problem]]:
    """Find the parts a table takes from files, and the row they make of its base."""
    parts: dict[str, dict[str, str]] = {}
    problems = []
    for part, where in own.items():
        if METHODS[base].storage is None and part in ("storage", "retrieval"):
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
    kinds = METHODS[base].kinds
    of_parts = [key for part, kind in kinds.items() if part not in own for key in settable(kind)]
    return {key: table[key] for key in (*OF_THE_LEARNER, *of_parts) if key in table}


def _impossible(
    row: Method, options: Mapping[str, Any], own: Mapping[str, Any], shared: Mapping[str, Any]
) -> list[Problem]:
    """Try each option alone, so that one bad value does not hide another; then all together."""
    learner = {**shared, **own}
    replay = learner["replay"] if is_count(learner.get("replay")) else Defaults().replay
    problems = []
    always = {key: options[key] for key in required_options(row)}
    for key, value in options.items():
        if complaint := _complaint(row, {**always, key: value}, replay):
            problems.append((f".{key}", complaint))
    if problems:
        return problems
    passes = learner.get("passes")
    complaint = _complaint(row, options, replay, passes if passes in get_args(Passes) else None)
    return [("", complaint)] if complaint else []


def _complaint(
    row: Method, options: Mapping[str, Any], replay: int, passes: str | None = None
) -> str | None:
    """Build the method's parts with these options and return what they say against them."""
    try:
        parts: dict[str, Any] = {}
        for part, kind in row.kinds.items():
            own = {key: options[key] for key in settable(kind) if key in options}
            if part == "retrieval" and kind is not None:
                own["replay"] = replay
            parts[part] = None if kind is None else kind(**own)
        if passes is not None:
            check_passes(passes, parts["rule"])
            check_fit(
                *(parts["objective"], parts["predictor"], parts["storage"], parts["retrieval"]),
                passes=passes,
                augments=True,
            )
    except Exception as error:  # a part of the user's may complain as it likes
        ours = isinstance(error, ValueError | TypeError)
        return str(error) if ours else f"{type(error).__name__}: {error}"
    return None
