"""One method's search space: what its parts declare, and what the spec says otherwise."""

from collections.abc import Mapping, Sequence
from typing import Any

from recollect.experiments.specs.cell import Cell
from recollect.experiments.specs.spec import Problem
from recollect.experiments.tuning.spaces.declared import options_of, ranges_of, value_of
from recollect.experiments.tuning.spaces.space import read_range, widened
from recollect.experiments.tuning.study import Settings
from recollect.ranges import Choice, Range
from recollect.suggestions import nearest, shown


def space_of(
    cell: Cell, shared: Mapping[str, Any], own: Mapping[str, Any]
) -> tuple[dict[str, Range], list[Problem]]:
    """Return the range of each option that is searched, and what is wrong with them.

    Args:
        cell: The method as the spec has it.
        shared: `[tune.space]`, as far as the method has such options.
        own: `[tune.methods.NAME.space]`, which overrides it.
    """
    try:
        declared = ranges_of(cell)
    except ValueError as error:
        return {}, [("", str(error))]
    options = options_of(cell)
    space = {key: looked for key, looked in declared.items() if looked.is_usual}
    problems = [
        (f".space.{k}", f"unknown option; {nearest(k, options)}") for k in own if k not in options
    ]
    for key, said in {**{k: v for k, v in shared.items() if k in options}, **own}.items():
        if key not in options:
            continue
        if said is False:
            space.pop(key, None)
        elif said is not True:
            try:
                space[key] = read_range(said)
            except ValueError as error:
                problems.append((f".space.{key}", str(error)))
        elif key in declared:
            space[key] = declared[key]
        else:
            problems.append((f".space.{key}", "declares no range; write one, as { log = [a, b] }."))
    if not space and not problems:
        problems.append((".space", "has nothing to search; give an option a range."))
    return {key: space[key] for key in options if key in space}, problems


def known_of(
    cell: Cell, space: Mapping[str, Range], said: Sequence[Mapping[str, Any]] | None
) -> tuple[tuple[Settings, ...], dict[str, Range], list[Problem]]:
    """Return the settings to try first, complete, and the space with all of them in it.

    Where none are said, the first trial is what the spec says now, if that is in the space. An
    option that a known setting leaves out is as the spec has it.
    """
    now = {key: value_of(cell, key) for key in space}
    if said is None:
        return ((now,) if _is_in(space, now) else ()), dict(space), []
    wider, known, problems = dict(space), [], []
    for number, settings in enumerate(said):
        for key, value in settings.items():
            if key in space:
                continue
            if key not in options_of(cell):
                told = f"unknown option; {nearest(key, space)}"
            elif value_of(cell, key) == value:
                continue
            else:
                told = f"is {shown(value)}, but is not searched; give it a range in tune.space."
            problems.append((f".known.{number}.{key}", told))
        full = {key: settings.get(key, now[key]) for key in space}
        for key, value in full.items():
            try:
                wider[key] = widened(wider[key], value)
            except ValueError as error:
                problems.append((f".known.{number}.{key}", str(error)))
        known.append(full)
    return tuple(known), wider, problems


def _is_in(space: Mapping[str, Range], settings: Settings) -> bool:
    try:
        return all(widened(looked, settings[key]) == looked for key, looked in space.items())
    except ValueError:
        return False


def ends_of(space: Mapping[str, Range], first: Settings) -> list[Settings]:
    """Return settings that try each end, or each choice, with the others as in `first`."""
    return [
        {**first, key: value}
        for key, looked in space.items()
        for value in (looked.values if isinstance(looked, Choice) else (looked.low, looked.high))
    ]
