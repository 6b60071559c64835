"""Options of a function or a class, checked by its signature."""

import inspect
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

from recollect.experiments.specs.named.options import Problem, Settings, as_kind, in_words, plain
from recollect.suggestions import nearest, shown

# What modules often import for type checkers alone, as those of torch's schedules do.
_FOR_CHECKERS: Final = {"Callable": Callable, "Iterable": Iterable, "Sequence": Sequence}


def parameters_of(
    called: Callable[..., Any], *, given: Collection[str] = ()
) -> dict[str, inspect.Parameter]:
    """Return the named parameters of a function or class, less those that are given anyway.

    Raises:
        ValueError: It tells of none.
    """
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    found = inspect.signature(called).parameters
    return {key: p for key, p in found.items() if p.kind in kinds and key not in given}


def read_by_signature(
    called: Callable[..., Any],
    said: Mapping[str, Any],
    *,
    name: str,
    given: Collection[str] = (),
    stand_in: Mapping[str, Any] | None = None,
) -> tuple[Settings, list[Problem]]:
    """Check options by the names and types of parameters.

    Args:
        called: What takes them.
        said: The options.
        name: What to call it in a message.
        given: Parameters that are no options.
        stand_in: Values that a spec may give in words, and what is checked in their place.

    Returns:
        The options that differ from their defaults, as JSON can say them; and what is wrong, by
        key. Defaults are not written out, so that a later release with a new parameter leaves the
        identity of a run alone.
    """
    parameters = parameters_of(called, given=given)
    takes_any = any(p.kind == p.VAR_KEYWORD for p in inspect.signature(called).parameters.values())
    try:
        kinds = typing.get_type_hints(
            called.__init__ if isinstance(called, type) else called,  # type: ignore[misc]
            localns=_FOR_CHECKERS,
        )
    except Exception:  # annotations of a file of the user's can be anything
        kinds = {}
    values: Settings = {}
    problems = [
        (key, f"is missing; {name} needs it.")
        for key, p in parameters.items()
        if p.default is p.empty and key not in said
    ]
    for key, value in said.items():
        if key not in parameters and not takes_any:
            known = nearest(key, parameters) if parameters else f"{name} takes no options."
            problems.append((key, f"unknown key; {known}"))
            continue
        if isinstance(value, str) and stand_in and value in stand_in:
            values[key] = value
            value = stand_in[value]
        default = parameters[key].default if key in parameters else None
        checked, complaint = _checked(value, kinds.get(key), default)
        if complaint:
            problems.append((key, f"is {shown(value)}; it should be {complaint}."))
        elif key not in values and (key not in parameters or checked != plain(default)):
            values[key] = checked
    return values, problems


def _checked(value: object, kind: Any, default: object) -> tuple[Any, str | None]:
    """Return the value as JSON says it, and what it should have been if it is wrong."""
    if kind is None and not isinstance(default, bool | int | float | str):
        return plain(value), None
    if kind is None:
        kind = float if type(default) is float else type(default)
    try:
        checked = as_kind(kind, value)
    except ValidationError as error:
        return None, in_words(error)
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError):
        return plain(value), None  # a type that no spec can say; the part itself will judge
    # A type such as Iterable[int] is given back as something to iterate, once.
    is_plain = isinstance(checked, str | int | float | bool | list | tuple | dict | None)
    return plain(checked if is_plain or not isinstance(checked, Iterable) else value), None
